// Cells of a Gowin FPGA after synthesis: LUTs and the multiplexers between them, ALUs, flip-flops, the 16 x 4 bit
// memory of LUTs, pins, the gate of a clock, and the PLL, whose output is its input clock.
// Source: Gowin UG288, Gowin Configurable Function Unit User Guide; UG286, Gowin Clock User Guide; UG289, Gowin
// Programmable IO User Guide.

`default_nettype none

module LUT1 #(parameter [1:0] INIT = 0) (input wire I0, output wire F);
    assign F = INIT[I0];
endmodule

module LUT2 #(parameter [3:0] INIT = 0) (input wire I0, I1, output wire F);
    assign F = INIT[{I1, I0}];
endmodule

module LUT3 #(parameter [7:0] INIT = 0) (input wire I0, I1, I2, output wire F);
    assign F = INIT[{I2, I1, I0}];
endmodule

module LUT4 #(parameter [15:0] INIT = 0) (input wire I0, I1, I2, I3, output wire F);
    assign F = INIT[{I3, I2, I1, I0}];
endmodule

module MUX2_LUT5 (input wire I0, I1, S0, output wire O);
    assign O = S0 ? I1 : I0;
endmodule

module MUX2_LUT6 (input wire I0, I1, S0, output wire O);
    assign O = S0 ? I1 : I0;
endmodule

module MUX2_LUT7 (input wire I0, I1, S0, output wire O);
    assign O = S0 ? I1 : I0;
endmodule

module MUX2_LUT8 (input wire I0, I1, S0, output wire O);
    assign O = S0 ? I1 : I0;
endmodule

// Of its modes, addition (0), subtraction (1), and both, by I3 (2).
module ALU #(parameter ALU_MODE = 0) (input wire I0, I1, I3, CIN, output wire SUM, COUT);
    generate if (ALU_MODE > 2) unsupported_mode unknown (); endgenerate
    wire subtract = ALU_MODE == 1 || ALU_MODE == 2 && !I3;
    wire propagate = I0 ^ I1 ^ subtract;
    assign SUM = propagate ^ CIN;
    assign COUT = propagate ? CIN : I0;
endmodule

// A flip-flop that takes VALUE while FORCE is 1.
module gowin_flip_flop #(parameter [0:0] INIT = 0, VALUE = 0) (input wire CLK, D, CE, FORCE, output wire Q);
    reg q = INIT;
    assign Q = q;
    always @(posedge CLK) if (FORCE) q <= VALUE; else if (CE) q <= D;
endmodule

module DFF #(parameter [0:0] INIT = 0) (input wire CLK, D, output wire Q);
    gowin_flip_flop #(INIT) flip_flop (CLK, D, 1'b1, 1'b0, Q);
endmodule

module DFFE #(parameter [0:0] INIT = 0) (input wire CLK, D, CE, output wire Q);
    gowin_flip_flop #(INIT) flip_flop (CLK, D, CE, 1'b0, Q);
endmodule

module DFFR #(parameter [0:0] INIT = 0) (input wire CLK, D, RESET, output wire Q);
    gowin_flip_flop #(INIT) flip_flop (CLK, D, 1'b1, RESET, Q);
endmodule

module DFFRE #(parameter [0:0] INIT = 0) (input wire CLK, D, CE, RESET, output wire Q);
    gowin_flip_flop #(INIT) flip_flop (CLK, D, CE, RESET, Q);
endmodule

module DFFS #(parameter [0:0] INIT = 1) (input wire CLK, D, SET, output wire Q);
    gowin_flip_flop #(INIT, 1) flip_flop (CLK, D, 1'b1, SET, Q);
endmodule

module DFFSE #(parameter [0:0] INIT = 1) (input wire CLK, D, CE, SET, output wire Q);
    gowin_flip_flop #(INIT, 1) flip_flop (CLK, D, CE, SET, Q);
endmodule

module RAM16SDP4 #(parameter [15:0] INIT_0 = 0, INIT_1 = 0, INIT_2 = 0, INIT_3 = 0) (
    input wire [3:0] DI, WAD, RAD, input wire WRE, CLK, output wire [3:0] DO
);
    reg [15:0] column_0 = INIT_0, column_1 = INIT_1, column_2 = INIT_2, column_3 = INIT_3;
    assign DO = {column_3[RAD], column_2[RAD], column_1[RAD], column_0[RAD]};
    always @(posedge CLK) if (WRE) {column_3[WAD], column_2[WAD], column_1[WAD], column_0[WAD]} <= DI;
endmodule

module GND (output wire G);
    assign G = 0;
endmodule

module VCC (output wire V);
    assign V = 1;
endmodule

module IBUF (input wire I, output wire O);
    assign O = I;
endmodule

module OBUF (input wire I, output wire O);
    assign O = I;
endmodule

module TBUF (input wire I, OEN, output wire O);
    assign O = OEN ? 1'bz : I;
endmodule

module DQCE (input wire CLKIN, CE, output wire CLKOUT);
    reg enabled = 0;
    always @(negedge CLKIN) enabled <= CE;
    assign CLKOUT = CLKIN & enabled;
endmodule

// The output clock is the input clock. The timing analysis checks the ratio of the two frequencies.
module rPLL #(
    parameter FCLKIN = "27", IDIV_SEL = 0, FBDIV_SEL = 0, ODIV_SEL = 8, DEVICE = "GW2AR-18C", CLKFB_SEL = "internal",
    parameter DYN_IDIV_SEL = "false", DYN_FBDIV_SEL = "false", DYN_ODIV_SEL = "false"
) (
    input wire CLKIN, CLKFB, RESET, RESET_P, input wire [5:0] FBDSEL, IDSEL, ODSEL, input wire [3:0] PSDA, DUTYDA, FDLY,
    output wire CLKOUT, LOCK
);
    reg [6:0] count = 0;
    assign CLKOUT = CLKIN & !RESET_P;
    assign LOCK = count[6];
    always @(posedge CLKIN or posedge RESET) begin
        if (RESET) count <= 0;
        else if (!LOCK) count <= count + 1;
    end
endmodule
