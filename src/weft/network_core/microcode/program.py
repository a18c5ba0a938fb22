"""The microprogram: it reads the list, checks descriptors, and runs loads and jobs, one at a time.

Jobs come first: a load is executed when the next job waits for it. So the heads find the errors
that `weft.golden.network_core.run_list` finds.
"""

from dataclasses import dataclass

from weft.network_core.config import ADD_TABLE_WORDS, NetworkCoreConfig
from weft.network_core.descriptors import LIST_VERSION, ListError, ListOpcode, NetworkState
from weft.network_core.microcode.instructions import REGISTERS, Assembler

__all__ = ["MicroProgram", "assemble"]

_BEGIN = """
start:  IN BASE; ST base; IN LIMIT; SUB base; ST room
        IN LOW; DO LOADS; ST head_at; DO JOBS; SUB =32; ST head_at
        IN HIGH; ST log
        LD =0; ST loads; ST jobs; ST kind
        DO LOADS; ST head_turn; ST head_passed; ST head_wait; ST head_source
        DO JOBS; J leave
"""
# Reads the descriptor of the selected head, and goes to what its kind needs.
_WALK = """
walk:   DO CLEAR
        LD room; SUB head_at; J NC address; SUB =32; J NC address
        LD head_at; ADD base; OUT MEMORY
        GET HIGH; USED NZ
        IN LOW; AND =0xFF; SUB {FIRST_KIND}; J Z load
        SUB =1; J Z job; SUB =1; J Z loop; SUB =1; J Z end
opcode: LD {OPCODE}; OUT STATE
field:  LD {FIELD}; OUT STATE
address: LD {ADDRESS}; OUT STATE
blocked: J LOADS deadlock
        LD =0
to_loads: ST ended; DO LOADS; J walk
deadlock: LD {DEADLOCK}; OUT STATE

job:    LD =2; ST kind
        IN LOW; ST flags; AND =0xF000; USED NZ
        IN LOW; AND =0x0600; SUB =0x0600; BAD Z
        GET LOW; ST need; IN HIGH; AND =0xFF; SUB =1; BAD NZ; IN HIGH; AND =0xFF00; USED NZ
        GET LOW; ST rows_left; BAD Z; IN HIGH; ST out_width; BAD Z
        GET LOW; BAD Z; SUB =1; ST columns; IN HIGH; BAD Z
        GET LOW; OUT KERNEL; AND =0xFF; BAD Z; IN LOW; AND =0xFF00; BAD Z
        IN HIGH; OUT TAP_VECTORS; BAD Z
        GET LOW; ST group_tiles; BAD Z; IN HIGH; USED NZ
        GET ADDRESS; ST group_step
        GET LOW; OUT HEIGHT; BAD Z; IN HIGH; OUT WIDTH; BAD Z
        GET LOW; ST y; IN HIGH; ST first_x
        GET LOW; AND =0xFF; ST stride_y; IN ADDRESS; AND =0xFF; ST stride_x; IN HIGH; OUT DILATION
        GET ADDRESS; ADD head_input; ST input
        GET ADDRESS; ST input_pixel
        GET ADDRESS; SUB input_pixel; ST input_row
        GET ADDRESS; OUT TAP_X
        GET ADDRESS; OUT TAP_Y
        GET LOW; ST b_word; IN HIGH; ST b_step
        GET LOW; OUT LINE; IN HIGH; OUT ADD_LINE
        GET ADDRESS; ADD head_output; ST output
        GET ADDRESS; ST output_pixel
        GET ADDRESS; SUB output_pixel; ST output_row
        GET LOW; OUT OUTSIDE; IN HIGH; OUT LIMITS
        GET ADDRESS; ADD head_added; ST added
        GET ADDRESS; ST added_pixel
        GET ADDRESS; SUB added_pixel; ST added_row
        GET LOW; OUT SUM_ZERO; AND =0xFF; USED NZ; IN HIGH; OUT SUM_LIMITS
        LD =1; J zeros

load:   LD =1; ST kind
        IN LOW; OUT LOAD_FLAGS; AND =0xFC00; USED NZ
        IN LOW; AND =0x0100; ST diagonal; IN LOW; AND =0x0200; ST fill
        GET LOW; ST need; IN HIGH; OUT LOAD_TARGET; AND =0xFF; ST target
        GET ADDRESS; ADD head_source; ST source
        GET LOW; OUT LOAD_WORD; ST first; IN HIGH; OUT LOAD_WORDS; ST words; BAD Z
        ADD first; BAD C; ST last
        LD target; J Z for_b; SUB =1; J Z for_lines; SUB =1; BAD NZ
        LD {TABLE}; J compare
for_b:  LD {B}; J compare
for_lines: LD {LINES}
compare: SUB last; BAD NC
        LD =4; J zeros

loop:   LD =3; ST kind
        IN LOW; AND =0xFF00; USED NZ
        GET LOW; ST times; BAD Z; IN HIGH; ST body; BAD Z
        GET LOW; ST body_loads; IN HIGH; ST body_jobs
        GET ADDRESS; ST source_step
        GET ADDRESS; ST input_step
        GET ADDRESS; ST output_step
        GET ADDRESS; ST added_step
        DO ZEROS; DO ZEROS; DO ZEROS; DO ZEROS
        LD =3; J zeros

end:    LD =4; ST kind
        IN LOW; AND =0xFE00; USED NZ
        GET LOW; ST result_bytes; IN HIGH; USED NZ
        LD =1024; SUB result_bytes; BAD NC
        GET ADDRESS; ST result
        DO ZEROS; LD =4

zeros:  DO ZEROS; DO ZEROS; DO ZEROS; DO ZEROS; DO ZEROS; DO ZEROS; DO ZEROS
        SUB =1; J NZ zeros
        J ISUSED opcode
        LD kind; SUB =1; J Z check_load; SUB =1; J Z check_job
        J ISBAD field
        SUB =1; J Z check_loop
        J LOADS loads_end
        LD result_bytes; J Z inside
        LD room; SUB result; J NC address
        ST size; DO CLEAR; ADD size; J C inside
        ST size; DO CLEAR; ADD size; J C inside
        SUB result_bytes; J NC address
inside: LD =1; J to_loads
loads_end: LD ended; J Z deadlock
        LD result; ADD base; OUT X; LD result_bytes; OUT Y
        LD {DONE}; OUT STATE
"""
# The next descriptor, or another turn of a loop.
_HEADS = """
check_loop: LD head_passed; SUB body; J NC field
        LD =1; INC head_turn; SUB times; J Z leave
        LD source_step; INC head_source
        LD input_step; INC head_input
        LD output_step; INC head_output
        LD added_step; INC head_added
        LD body_loads; J LOADS wait_jobs; J wait
wait_jobs: LD body_jobs
wait:   ADD head_wait; J NC waits; LD =0xFFFF
waits:  ST head_wait
back:   LD =-32; INC head_at; LD =-1; INC body; J NZ back
        J walk
leave:  LD =0; ST head_turn; ST head_passed; ST head_wait; ST head_source
        LD base; ST head_input; ST head_output; ST head_added
        J behind
check_load: J LOADS own
advance: LD head_passed; ADD =1; J C behind; ST head_passed
behind: LD =32; INC head_at
        LD kind; SUB =1; J NZ walk
        DO JOBS; J walk
check_job: J LOADS advance
"""
# A job: pixel by pixel, and tile by tile. START clears the slots that the sums of the job before
# left in the rescaler, which FLAGS would turn into results. While the steps of a first tile come,
# the places of the next pixel are computed, so `_row` are relative to them. `columns` are one less:
# so one jump finds the last tile. Tiles that are groups of their own have their own loop.
_JOB = """
own:    J ISBAD field
        LD need; ADD head_wait; J C blocked; ST need
        J LOADS own_load
        LD loads; SUB need; J NC blocked
        LD room; SUB log; J NC address; SUB =2; J NC address
        LD log; ADD base; OUT MEMORY
        DO CYCLES START; IN LOW; OUT WRITE_LOW; IN HIGH; OUT WRITE_HIGH
        LD flags; OUT FLAGS
        LD y; OUT Y
row:    LD out_width; ST pixels_left
        LD first_x; ST x
pixel:  OUT X
        LD b_word; ST b; OUT B
        LD input; ST origin; OUT ORIGIN
        LD group_tiles; ST tiles_left
        LD output; OUT OUTPUT
        LD added; OUT ADDED
        LD columns; ST columns_left
        OUT TILE
        LD input_pixel; INC input
        LD output_pixel; INC output
        LD added_pixel; INC added
        J behind_tile
tile:   OUT TILE
behind_tile: LD =-4; INC columns_left; J NC pixel_end
        LD b_step; INC b; OUT B
        LD =-1; INC tiles_left; J Z group
next_tile: LD columns_left; J tile
group:  LD group_step; INC origin; OUT ORIGIN
        LD group_tiles; ST tiles_left; SUB =1; J NZ next_tile
each:   LD columns_left; OUT TILE
        LD =-4; INC columns_left; J NC pixel_end
        LD b_step; INC b; OUT B
        LD group_step; INC origin; OUT ORIGIN
        J each
pixel_end: LD =-1; INC pixels_left; J Z row_end
        LD stride_x; INC x
        J pixel
row_end: LD =-1; INC rows_left; J Z job_end
        LD input_row; INC input
        LD output_row; INC output
        LD added_row; INC added
        LD stride_y; INC y; OUT Y
        J row
job_end: DO DRAIN
        DO CYCLES; IN LOW; OUT WRITE_LOW; IN HIGH; OUT WRITE_HIGH
        LD =2; INC log
        LD jobs; ADD =1; J C advance; ST jobs; OUT JOB
        J advance
"""
_LOAD = """
own_load: LD jobs; SUB need; J NC blocked
        LD fill; J NZ loaded
        LD room; SUB source; J NC address
        SUB words; J NC address; ST space
        LD target; J Z load_b; SUB =1; J NZ loaded
        LD space; J three
load_b: LD diagonal; J NZ loaded
        LD space; SUB words; J NC address
three:  SUB words; J NC address; SUB words; J NC address
loaded: LD source; ADD base; OUT MEMORY; DO LOAD
        LD loads; ADD =1; J C advance; ST loads
        J advance
"""


@dataclass(frozen=True)
class MicroProgram:
    """The words of the program, and the first content of the registers."""

    words: list
    registers: list
    labels: dict


def assemble(config: NetworkCoreConfig) -> MicroProgram:
    """Return the microprogram of a core."""
    values = {
        error.name: f"={NetworkState.ERROR | error << 8}"
        for error in (ListError.OPCODE, ListError.FIELD, ListError.ADDRESS, ListError.DEADLOCK)
    }
    values |= {
        "DONE": f"={int(NetworkState.DONE)}", "TABLE": f"={ADD_TABLE_WORDS}",
        # The program tells the kinds of descriptors by their order.
        "FIRST_KIND": f"={LIST_VERSION << 4 | ListOpcode.LOAD}",
        "B": f"={config.b_words}", "LINES": f"={config.lines}",
    }
    found = Assembler("".join((_BEGIN, _WALK, _HEADS, _JOB, _LOAD)).format(**values))
    registers = [found.constants.get(n, 0) for n in range(REGISTERS)]
    return MicroProgram(found.words, registers, found.labels)
