"""The elements of an HTML page."""

from html.parser import HTMLParser

__all__ = ["HtmlElements"]


class HtmlElements(HTMLParser):
    """Checks that elements nest, and collects text, addresses, and the cells of tables.

    Attributes
    ----------
    open : list of str
        Elements without an end.
    text, cells : list of str
    links : list of str
        Addresses outside of the page.
    """

    def __init__(self, page):
        super().__init__()
        self.open, self.text, self.links, self.cells = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")
        self.links += [
            value for name, value in attributes
            if name in ("src", "href", "xlink:href", "srcset") and not value.startswith("#")
        ]

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data
