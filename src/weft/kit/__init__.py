"""The IP kit: a core behind a bus, with its driver, documents, test bench and examples."""
