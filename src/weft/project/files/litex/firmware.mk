# Compiles the programs, with LiteX's libraries and the driver of the core's kit. The Makefile calls
# it with SOC, the folder that soc.py has written.
include $(SOC)/software/include/generated/variables.mak
include $(SOC_DIRECTORY)/software/common.mak
DEPFLAGS =
CFLAGS += -O2 -Wextra -Wno-unused-parameter -Werror -I. -Icore/driver
LIBRARIES = $(PACKAGES:%=-L$(SOC)/software/%) $(LIBS:lib%=-l%)
DRIVER = $(wildcard core/driver/*.c)

# LiteX's linker script places the start of a program by the name of this file.
$(SOC)/crt0.o: $(CPU_DIRECTORY)/crt0.S
	@$(CC_normal) -c $(CFLAGS) -o $@ $<

$(SOC)/%.bin: %.c soc.h $(DRIVER) $(SOC)/crt0.o $(SOC)/software/include/generated/csr.h
	@$(CC_normal) $(LDFLAGS) -T $(SOC_DIRECTORY)/software/demo/linker.ld -N -o $(@:.bin=.elf) $< \
		$(DRIVER) $(SOC)/crt0.o $(LIBRARIES) -Wl,--gc-sections
	@$(OBJCOPY_normal) -O binary $(@:.bin=.elf) $@

.PHONY: check
check:
	@$(CC_normal) $(CFLAGS) -fsyntax-only main.c test.c
