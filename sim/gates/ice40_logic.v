// The logic cell of a routed iCE40: a 4-input LUT, the carry of I1, I2 and the carry input, and a flip-flop.
// Source: Lattice FPGA-DS-02008 and FPGA-DS-02029, iCE40 UltraPlus and iCE40 LP/HX data sheets, PLB; FPGA-TN-02026,
// iCE Technology Library, SB_DFF*: the enable also gates a synchronous reset; all flip-flops start at 0.

`default_nettype none

module ICESTORM_LC #(
    parameter [15:0] LUT_INIT = 0,
    parameter [0:0] NEG_CLK = 0, CARRY_ENABLE = 0, DFF_ENABLE = 0, SET_NORESET = 0, ASYNC_SR = 0,
    parameter [0:0] CIN_CONST = 0, CIN_SET = 0
) (
    input wire I0, I1, I2, I3, CIN, CLK, CEN, SR,
    output wire LO, O, COUT
);
    wire carry = CIN_CONST ? CIN_SET : CIN;
    assign LO = LUT_INIT[{I3, I2, I1, I0}];
    assign COUT = CARRY_ENABLE & (I1 & I2 | (I1 ^ I2) & carry);
    generate
        if (!DFF_ENABLE) assign O = LO;
        else begin
            reg state = 0;
            wire clock = CLK ^ NEG_CLK;
            assign O = state;
            if (ASYNC_SR) begin
                always @(posedge clock or posedge SR) begin
                    if (SR) state <= SET_NORESET;
                    else if (CEN) state <= LO;
                end
            end else begin
                always @(posedge clock) if (CEN) state <= SR ? SET_NORESET : LO;
            end
        end
    endgenerate
endmodule
