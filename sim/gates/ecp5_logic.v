// Logic cells of an ECP5 after synthesis and after routing: 4-input LUTs, halves of CCU2C, flip-flops, and the 16 x 4
// bit memory that replaces four LUTs.
// Source: Lattice FPGA-DS-02012, ECP5 Family Data Sheet, PFU; Project Trellis, slices and their distributed RAM.

`default_nettype none

module LUT4 #(parameter [15:0] INIT = 0) (input wire A, B, C, D, output wire Z);
    assign Z = INIT[{D, C, B, A}];
endmodule

// A routed LUT: logic, half a CCU2C, or one bit column of a memory that TRELLIS_RAMW writes.
module TRELLIS_COMB #(
    parameter [15:0] INITVAL = 0, parameter MODE = "LOGIC", parameter CCU2_INJECT1 = "NO",
    parameter WREMUX = "WRE", parameter WCKMUX = "WCK"
) (
    input wire A, B, C, D, FCI, WD, WAD0, WAD1, WAD2, WAD3, WRE, WCK,
    output wire F, FCO
);
    generate
        if (MODE == "CCU2") CCU2C_half #(INITVAL, CCU2_INJECT1) half (A, B, C, D, FCI, F, FCO);
        else if (MODE == "DPRAM") begin
            reg [15:0] memory = INITVAL;
            wire clock = WCK ^ (WCKMUX == "INV");
            assign F = memory[{A, C, B, D}];
            always @(posedge clock) if (WRE ^ (WREMUX == "INV")) memory[{WAD3, WAD2, WAD1, WAD0}] <= WD;
        end
        else if (MODE == "LOGIC") assign F = INITVAL[{D, C, B, A}];
        else if (MODE != "RAMW_BLOCK") unsupported_mode unknown ();
    endgenerate
endmodule

// The write port of a memory of four TRELLIS_COMB: address and data.
module TRELLIS_RAMW (
    input wire A0, B0, C0, D0, A1, B1, C1, D1,
    output wire WADO0, WADO1, WADO2, WADO3, WDO0, WDO1, WDO2, WDO3
);
    assign {WADO3, WADO2, WADO1, WADO0} = {A0, C0, B0, D0};
    assign {WDO3, WDO2, WDO1, WDO0} = {B1, D1, A1, C1};
endmodule

module TRELLIS_DPR16X4 #(
    parameter [63:0] INITVAL = 0, parameter WCKMUX = "WCK", parameter WREMUX = "WRE"
) (
    input wire [3:0] DI, WAD, RAD, input wire WRE, WCK,
    output wire [3:0] DO
);
    reg [63:0] memory = INITVAL;
    wire clock = WCK ^ (WCKMUX == "INV");
    assign DO = memory[{RAD, 2'b00} +: 4];
    always @(posedge clock) if (WRE ^ (WREMUX == "INV")) memory[{WAD, 2'b00} +: 4] <= DI;
endmodule

// A flip-flop. Its input is DI, from the LUT before it, or M if SD is "0".
module TRELLIS_FF #(
    parameter CEMUX = "1", parameter CLKMUX = "CLK", parameter LSRMUX = "LSR", parameter SRMODE = "LSR_OVER_CE",
    parameter REGSET = "RESET", parameter SD = "1"
) (
    input wire CLK, LSR, CE, DI, M,
    output wire Q
);
    localparam START = REGSET == "SET";
    wire clock = CLK ^ (CLKMUX == "INV"), reset = LSR ^ (LSRMUX == "INV");
    wire enable = CEMUX == "1" ? 1'b1 : CEMUX == "0" ? 1'b0 : CE ^ (CEMUX == "INV");
    wire next = SD == "0" ? M : DI;
    reg state = START;
    assign Q = state;
    generate
        if (SRMODE == "ASYNC") begin
            always @(posedge clock or posedge reset) begin
                if (reset) state <= START;
                else if (enable) state <= next;
            end
        end else if (SRMODE == "CE_OVER_LSR") begin
            always @(posedge clock) if (enable) state <= reset ? START : next;
        end else begin
            always @(posedge clock) begin
                if (reset) state <= START;
                else if (enable) state <= next;
            end
        end
    endgenerate
endmodule
