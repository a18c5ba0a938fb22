"""The identity of a Weft core on USB, which its descriptors and the host share."""

__all__ = ["DEVICE_VERSION", "MANUFACTURER", "PRODUCT", "PRODUCT_ID", "VENDOR_ID"]

VENDOR_ID, PRODUCT_ID = 0x1209, 0x0001  # of pid.codes, for tests; other devices may have it, too
MANUFACTURER, PRODUCT = "Weft", "Weft accelerator"
DEVICE_VERSION = 1.0  # bcdDevice: version of the USB interface
