"""The page of registers is the one that its tool writes."""

from tooling import load

registers = load("registers")


def test_the_page_is_up_to_date():
    assert registers.PAGE.read_text(encoding="utf-8") == registers.page()


def test_it_has_the_registers_of_each_kind():
    for name in ("control", "cmd_fifo", "result_fifo", "doorbell", "dma_base"):
        assert f"`{name}`" in registers.page()
