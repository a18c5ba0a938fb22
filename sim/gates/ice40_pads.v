// Cells around the logic of an iCE40: pins, global buffers, and the PLL, whose output is its input clock.
// Source: Lattice FPGA-TN-02026, iCE Technology Library.

`default_nettype none

// A pin without register and latch: input, output, or output with an enable.
module SB_IO #(
    parameter [5:0] PIN_TYPE = 0, parameter [0:0] NEG_TRIGGER = 0, PULLUP = 0, parameter IO_STANDARD = "SB_LVCMOS"
) (
    inout wire PACKAGE_PIN,
    input wire LATCH_INPUT_VALUE, CLOCK_ENABLE, INPUT_CLK, OUTPUT_CLK, OUTPUT_ENABLE, D_OUT_0, D_OUT_1,
    output wire D_IN_0, D_IN_1
);
    generate
        if (PIN_TYPE[5:2] == 4'b0110) assign PACKAGE_PIN = D_OUT_0;
        else if (PIN_TYPE[5:2] == 4'b1010) assign PACKAGE_PIN = OUTPUT_ENABLE ? D_OUT_0 : 1'bz;
        else if (PIN_TYPE[5:2] != 0) unsupported_output_type unknown_output ();
        if (PIN_TYPE[1:0] != 2'b01 && PIN_TYPE[5:2] == 0) unsupported_input_type unknown_input ();
    endgenerate
    assign D_IN_0 = PACKAGE_PIN;
    assign D_IN_1 = 1'b0;
endmodule

module SB_GB (input wire USER_SIGNAL_TO_GLOBAL_BUFFER, output wire GLOBAL_BUFFER_OUTPUT);
    assign GLOBAL_BUFFER_OUTPUT = USER_SIGNAL_TO_GLOBAL_BUFFER;
endmodule

// The output clock is the input clock. The timing analysis checks the ratio of the two frequencies.
module ICESTORM_PLL #(
    parameter TEST_MODE = 0, SHIFTREG_DIVMODE = 0, PLLTYPE = 0, ENABLE_ICEGATE_PORTA = 0, ENABLE_ICEGATE_PORTB = 0,
    parameter PLLOUT_SELECT_A = 0, PLLOUT_SELECT_B = 0, FILTER_RANGE = 0, FEEDBACK_PATH = 0, FDA_RELATIVE = 0,
    parameter FDA_FEEDBACK = 0, DIVR = 0, DIVF = 0, DIVQ = 0, DELAY_ADJMODE_REL = 0, DELAY_ADJMODE_FB = 0
) (
    input wire REFERENCECLK, RESETB, BYPASS,
    output wire LOCK, PLLOUT_A
);
    reg [6:0] count = 0;
    assign PLLOUT_A = REFERENCECLK;
    assign LOCK = count[6];
    always @(posedge REFERENCECLK or negedge RESETB) begin
        if (!RESETB) count <= 0;
        else if (!LOCK) count <= count + 1;
    end
endmodule
