"""Tasks: named functions of values, run on workers here or on a cluster; a store keeps outcomes.

=========  ===========================================================================
module     content
=========  ===========================================================================
`engine`   runs tasks on workers of dask.distributed
`store`    keeps outcomes in one SQLite file, and runs the items that it does not have
`program`  a task that is a program, with limits: files come in and go out as bytes
=========  ===========================================================================
"""
