"""USB on the FPGA's own pins: the bytes of the serial link as a CDC-ACM device, by LUNA."""
