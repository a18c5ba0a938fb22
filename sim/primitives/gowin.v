// Models of the Gowin primitives that the hardware instantiates, written from the user guides. They cover the modes in
// use: resets stay 0, and a block is always selected.

`default_nettype none

// The operands, the pipeline and the product have a register each, if its parameter is 1.
// Source: Gowin UG287, Gowin DSP User Guide.
module MULT9X9 #(
    parameter AREG = 1'b0, BREG = 1'b0, PIPE_REG = 1'b0, OUT_REG = 1'b0, ASIGN_REG = 1'b0, BSIGN_REG = 1'b0,
    parameter SOA_REG = 1'b0, MULT_RESET_MODE = "SYNC"
) (
    input wire [8:0] A, SIA, B, SIB, input wire ASIGN, BSIGN, ASEL, BSEL, CE, CLK, RESET, output wire [17:0] DOUT
);
    reg [9:0] a_reg = 0, b_reg = 0;  // with a sign bit
    reg [17:0] pipe_reg = 0, out_reg = 0;
    wire [9:0] a = {ASIGN & A[8], A}, b = {BSIGN & B[8], B};
    wire [9:0] a_in = AREG ? a_reg : a, b_in = BREG ? b_reg : b;
    wire [17:0] product = {{8{a_in[9]}}, a_in} * {{8{b_in[9]}}, b_in};
    wire [17:0] p_in = PIPE_REG ? pipe_reg : product;
    assign DOUT = OUT_REG ? out_reg : p_in;
    always @(posedge CLK) if (CE) begin
        a_reg <= a;
        b_reg <= b;
        pipe_reg <= product;
        out_reg <= p_in;
    end
endmodule

// Port A writes and port B reads, in words of the same width. The memory has 16,384 bits, and another bit for each
// eight of them in words of 9, 18 or 36 bits. Addresses count bits without these; in words of 16, 18, 32 or 36 bits the
// lowest address bits of a write enable its bytes.
// Source: Gowin UG285, Gowin BSRAM and SSRAM User Guide.
module gowin_sdp #(parameter READ_MODE = 1'b0, WIDTH = 32, BYTE = 8, SIZE = 32) (
    input wire CLKA, CEA, CLKB, CEB, OCE, input wire [13:0] ADA, ADB, input wire [SIZE - 1:0] DI,
    output wire [SIZE - 1:0] DO
);
    localparam BYTES = WIDTH / BYTE, BITS = BYTES == 0 ? WIDTH : BYTES * 8;  // without the ninth bits
    reg [WIDTH - 1:0] memory [0:16384 / BITS - 1];
    reg [WIDTH - 1:0] read_reg = 0, output_reg = 0;
    assign DO = READ_MODE ? output_reg : read_reg;
    integer n;
`ifdef NOISE
    initial for (n = 0; n < 16384 / BITS; n = n + 1) memory[n] = {$random, $random};
`endif
    always @(posedge CLKA) if (CEA) for (n = 0; n < WIDTH; n = n + 1)
        if (BYTES < 2 || ADA[n / BYTE]) memory[ADA / BITS][n] <= DI[n];
    always @(posedge CLKB) begin
        if (CEB) read_reg <= memory[ADB / BITS];
        if (OCE) output_reg <= read_reg;
    end
endmodule

module SDPB #(
    parameter READ_MODE = 1'b0, BIT_WIDTH_0 = 32, BIT_WIDTH_1 = 32, parameter [2:0] BLK_SEL_0 = 0, BLK_SEL_1 = 0,
    parameter RESET_MODE = "SYNC"
) (
    input wire CLKA, CEA, RESETA, CLKB, CEB, OCE, RESETB, input wire [2:0] BLKSELA, BLKSELB,
    input wire [13:0] ADA, ADB, input wire [31:0] DI, output wire [31:0] DO
);
    gowin_sdp #(READ_MODE, BIT_WIDTH_0, 8, 32) sdp (CLKA, CEA, CLKB, CEB, OCE, ADA, ADB, DI, DO);
endmodule

module SDPX9B #(
    parameter READ_MODE = 1'b0, BIT_WIDTH_0 = 36, BIT_WIDTH_1 = 36, parameter [2:0] BLK_SEL_0 = 0, BLK_SEL_1 = 0,
    parameter RESET_MODE = "SYNC"
) (
    input wire CLKA, CEA, RESETA, CLKB, CEB, OCE, RESETB, input wire [2:0] BLKSELA, BLKSELB,
    input wire [13:0] ADA, ADB, input wire [35:0] DI, output wire [35:0] DO
);
    gowin_sdp #(READ_MODE, BIT_WIDTH_0, 9, 36) sdp (CLKA, CEA, CLKB, CEB, OCE, ADA, ADB, DI, DO);
endmodule

// Ports A and B read and write, in words of the same width of at most 8 bits. While a port writes, its output holds.
// Source: Gowin UG285, Gowin BSRAM and SSRAM User Guide.
module DPB #(
    parameter READ_MODE0 = 1'b0, READ_MODE1 = 1'b0, parameter [1:0] WRITE_MODE0 = 0, WRITE_MODE1 = 0,
    parameter BIT_WIDTH_0 = 8, BIT_WIDTH_1 = 8, parameter [2:0] BLK_SEL_0 = 0, BLK_SEL_1 = 0, parameter RESET_MODE = "SYNC"
) (
    input wire CLKA, CEA, OCEA, RESETA, WREA, CLKB, CEB, OCEB, RESETB, WREB, input wire [2:0] BLKSELA, BLKSELB,
    input wire [13:0] ADA, ADB, input wire [15:0] DIA, DIB, output wire [15:0] DOA, DOB
);
    generate if (READ_MODE0 || READ_MODE1 || WRITE_MODE0 || WRITE_MODE1 || BIT_WIDTH_0 > 8 || BIT_WIDTH_1 != BIT_WIDTH_0)
        unsupported_mode unknown ();
    endgenerate
    reg [BIT_WIDTH_0 - 1:0] memory [0:16384 / BIT_WIDTH_0 - 1];
    reg [BIT_WIDTH_0 - 1:0] a_reg = 0, b_reg = 0;
    assign DOA = a_reg;
    assign DOB = b_reg;
`ifdef NOISE
    integer n;
    initial for (n = 0; n < 16384 / BIT_WIDTH_0; n = n + 1) memory[n] = $random;
`endif
    always @(posedge CLKA) if (CEA) begin
        if (WREA) memory[ADA / BIT_WIDTH_0] <= DIA[BIT_WIDTH_0 - 1:0];
        else a_reg <= memory[ADA / BIT_WIDTH_0];
    end
    always @(posedge CLKB) if (CEB) begin
        if (WREB) memory[ADB / BIT_WIDTH_0] <= DIB[BIT_WIDTH_0 - 1:0];
        else b_reg <= memory[ADB / BIT_WIDTH_0];
    end
endmodule
