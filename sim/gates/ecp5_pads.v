// Cells around the logic of an ECP5: pins, clock gates, and the PLL, whose output is its input clock.
// Source: Lattice FPGA-TN-02200, ECP5 and ECP5-5G sysCLOCK PLL/DLL Design and Usage Guide; FPGA-TN-02032, sysIO.

`default_nettype none

module TRELLIS_IO #(parameter DIR = "INPUT") (inout wire B, input wire I, T, output wire O);
    generate
        if (DIR == "OUTPUT") assign B = I;
        else if (DIR == "BIDIR") assign B = T ? 1'bz : I;
        else if (DIR != "INPUT") unsupported_direction unknown ();
    endgenerate
    assign O = B;
endmodule

module DCCA (input wire CLKI, CE, output wire CLKO);
    reg enabled = 0;
    always @(negedge CLKI) enabled <= CE;
    assign CLKO = CLKI & enabled;
endmodule

// The output clock is the input clock. The timing analysis checks the ratio of the two frequencies.
module EHXPLLL #(
    parameter CLKFB_DIV = 1, CLKI_DIV = 1, CLKOP_CPHASE = 0, CLKOP_DIV = 1, CLKOP_FPHASE = 0,
    parameter CLKOP_ENABLE = "ENABLED", FEEDBK_PATH = "CLKOP",
    parameter CLKOS_CPHASE = 0, CLKOS_DIV = 1, CLKOS_ENABLE = "DISABLED", CLKOS_FPHASE = 0,
    parameter ICP_CURRENT = 0, LPF_RESISTOR = 0, MFG_ENABLE_FILTEROPAMP = 0, MFG_GMCREF_SEL = 0
) (
    input wire CLKI, CLKFB, RST, STDBY,
    output wire CLKOP, CLKOS, LOCK
);
    reg [6:0] count = 0;
    assign CLKOP = CLKI & !STDBY;
    assign CLKOS = CLKOP;
    assign LOCK = count[6];
    always @(posedge CLKI or posedge RST) begin
        if (RST) count <= 0;
        else if (!LOCK) count <= count + 1;
    end
endmodule
