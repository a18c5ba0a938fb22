"""Tasks: named functions of values, run on workers here or on a cluster; a store keeps outcomes.

====================  ===========================================================================
module                content
====================  ===========================================================================
`engine`              runs tasks on workers of dask.distributed
`session`             runs items one after another, those that the store does not have
`store`               keeps outcomes in one SQLite file
`program`             a task that is a program: files come in and go out as bytes
`limits`              runs a command with limits, and ends all of its processes
====================  ===========================================================================
"""
