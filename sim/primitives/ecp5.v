// Models of the ECP5 primitives that the hardware instantiates, written from the data sheets. They cover the modes
// in use: every register has CLK0 and CE0, and resets are synchronous.

`default_nettype none

// Half of a CCU2C: the sum is f(A, B, C, D) plus the carry. The carry out is the carry in if f is 1, otherwise g(A, B).
// Source: Lattice FPGA-DS-02012, ECP5 Family Data Sheet, slices in ripple mode.
module CCU2C_half #(parameter [15:0] INIT = 0, parameter INJECT1 = "YES") (
    input wire A, B, C, D, CI,
    output wire S, CO
);
    wire f = INIT[{D, C, B, A}];
    wire g = INIT[{2'b00, B, A}];
    wire no_carry = INJECT1 == "YES";
    assign S = no_carry ? f : f ^ CI;
    assign CO = f ? CI : !no_carry && g;
endmodule

module CCU2C #(
    parameter [15:0] INIT0 = 0, INIT1 = 0, parameter INJECT1_0 = "YES", INJECT1_1 = "YES"
) (
    input wire CIN, A0, B0, C0, D0, A1, B1, C1, D1,
    output wire S0, S1, COUT
);
    wire carry;
    CCU2C_half #(INIT0, INJECT1_0) low (A0, B0, C0, D0, CIN, S0, carry);
    CCU2C_half #(INIT1, INJECT1_1) high (A1, B1, C1, D1, carry, S1, COUT);
endmodule

// The operands, the pipeline and the product have a register each, if its clock is CLK0 and not NONE.
// Source: Lattice FPGA-TN-02205, ECP5 and ECP5-5G sysDSP Usage Guide.
module MULT18X18D #(
    parameter REG_INPUTA_CLK = "NONE", REG_INPUTA_CE = "CE0", REG_INPUTA_RST = "RST0",
    parameter REG_INPUTB_CLK = "NONE", REG_INPUTB_CE = "CE0", REG_INPUTB_RST = "RST0",
    parameter REG_PIPELINE_CLK = "NONE", REG_PIPELINE_CE = "CE0", REG_PIPELINE_RST = "RST0",
    parameter REG_OUTPUT_CLK = "NONE", REG_OUTPUT_CE = "CE0", REG_OUTPUT_RST = "RST0"
) (
    input wire CLK0, CE0, RST0, RST1, SIGNEDA, SIGNEDB,
    input wire A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, A15, A16, A17,
    input wire B0, B1, B2, B3, B4, B5, B6, B7, B8, B9, B10, B11, B12, B13, B14, B15, B16, B17,
    output wire P0, P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P11, P12, P13, P14, P15, P16, P17, P18, P19, P20,
    P21, P22, P23, P24, P25, P26, P27, P28, P29, P30, P31, P32, P33, P34, P35
);
    wire [17:0] a = {A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0};
    wire [17:0] b = {B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0};
    wire [35:0] p;
    assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16,
    P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} = p;
    reg [18:0] a_reg = 0, b_reg = 0;  // with a sign bit
    reg [35:0] pipeline_reg = 0, output_reg = 0;
    wire [18:0] a_in = REG_INPUTA_CLK == "CLK0" ? a_reg : {SIGNEDA & a[17], a};
    wire [18:0] b_in = REG_INPUTB_CLK == "CLK0" ? b_reg : {SIGNEDB & b[17], b};
    wire [35:0] product = {{17{a_in[18]}}, a_in} * {{17{b_in[18]}}, b_in};
    wire [35:0] p_in = REG_PIPELINE_CLK == "CLK0" ? pipeline_reg : product;
    assign p = REG_OUTPUT_CLK == "CLK0" ? output_reg : p_in;
    always @(posedge CLK0) begin
        if (CE0) begin
            a_reg <= {SIGNEDA & a[17], a};
            b_reg <= {SIGNEDB & b[17], b};
            pipeline_reg <= product;
            output_reg <= p_in;
        end
        if (REG_INPUTA_RST == "RST0" ? RST0 : RST1) a_reg <= 0;
        if (REG_INPUTB_RST == "RST0" ? RST0 : RST1) b_reg <= 0;
        if (REG_PIPELINE_RST == "RST0" ? RST0 : RST1) pipeline_reg <= 0;
        if (REG_OUTPUT_RST == "RST0" ? RST0 : RST1) output_reg <= 0;
    end
endmodule

// Both ports read and write, in words of 18, 9, 4, 2 or 1 bits. In words of 36 bits port A writes and port B reads, and
// half of the pins belong to the other port.
// Addresses count bits. In words of 18 or 36 bits the address bits below the word are byte enables for the write.
// Source: Lattice FPGA-TN-02204, ECP5 and ECP5-5G Memory Usage Guide.
module DP16KD #(
    parameter DATA_WIDTH_A = 18, DATA_WIDTH_B = 18, REGMODE_A = "NOREG", REGMODE_B = "NOREG",
    parameter RESETMODE = "SYNC", GSR = "ENABLED", CSDECODE_A = "0b000", CSDECODE_B = "0b000",
    parameter [319:0] INITVAL_00 = 0, INITVAL_01 = 0, INITVAL_02 = 0, INITVAL_03 = 0, INITVAL_04 = 0, INITVAL_05 = 0,
    parameter [319:0] INITVAL_06 = 0, INITVAL_07 = 0, INITVAL_08 = 0, INITVAL_09 = 0, INITVAL_0A = 0, INITVAL_0B = 0,
    parameter [319:0] INITVAL_0C = 0, INITVAL_0D = 0, INITVAL_0E = 0, INITVAL_0F = 0, INITVAL_10 = 0, INITVAL_11 = 0,
    parameter [319:0] INITVAL_12 = 0, INITVAL_13 = 0, INITVAL_14 = 0, INITVAL_15 = 0, INITVAL_16 = 0, INITVAL_17 = 0,
    parameter [319:0] INITVAL_18 = 0, INITVAL_19 = 0, INITVAL_1A = 0, INITVAL_1B = 0, INITVAL_1C = 0, INITVAL_1D = 0,
    parameter [319:0] INITVAL_1E = 0, INITVAL_1F = 0, INITVAL_20 = 0, INITVAL_21 = 0, INITVAL_22 = 0, INITVAL_23 = 0,
    parameter [319:0] INITVAL_24 = 0, INITVAL_25 = 0, INITVAL_26 = 0, INITVAL_27 = 0, INITVAL_28 = 0, INITVAL_29 = 0,
    parameter [319:0] INITVAL_2A = 0, INITVAL_2B = 0, INITVAL_2C = 0, INITVAL_2D = 0, INITVAL_2E = 0, INITVAL_2F = 0,
    parameter [319:0] INITVAL_30 = 0, INITVAL_31 = 0, INITVAL_32 = 0, INITVAL_33 = 0, INITVAL_34 = 0, INITVAL_35 = 0,
    parameter [319:0] INITVAL_36 = 0, INITVAL_37 = 0, INITVAL_38 = 0, INITVAL_39 = 0, INITVAL_3A = 0, INITVAL_3B = 0,
    parameter [319:0] INITVAL_3C = 0, INITVAL_3D = 0, INITVAL_3E = 0, INITVAL_3F = 0
) (
    input wire CLKA, CEA, OCEA, WEA, RSTA, CSA0, CSA1, CSA2, CLKB, CEB, OCEB, WEB, RSTB, CSB0, CSB1, CSB2,
    input wire ADA0, ADA1, ADA2, ADA3, ADA4, ADA5, ADA6, ADA7, ADA8, ADA9, ADA10, ADA11, ADA12, ADA13,
    input wire ADB0, ADB1, ADB2, ADB3, ADB4, ADB5, ADB6, ADB7, ADB8, ADB9, ADB10, ADB11, ADB12, ADB13,
    input wire DIA0, DIA1, DIA2, DIA3, DIA4, DIA5, DIA6, DIA7, DIA8, DIA9, DIA10, DIA11, DIA12, DIA13, DIA14,
    DIA15, DIA16, DIA17,
    input wire DIB0, DIB1, DIB2, DIB3, DIB4, DIB5, DIB6, DIB7, DIB8, DIB9, DIB10, DIB11, DIB12, DIB13, DIB14,
    DIB15, DIB16, DIB17,
    output wire DOA0, DOA1, DOA2, DOA3, DOA4, DOA5, DOA6, DOA7, DOA8, DOA9, DOA10, DOA11, DOA12, DOA13, DOA14,
    DOA15, DOA16, DOA17,
    output wire DOB0, DOB1, DOB2, DOB3, DOB4, DOB5, DOB6, DOB7, DOB8, DOB9, DOB10, DOB11, DOB12, DOB13, DOB14,
    DOB15, DOB16, DOB17
);
    localparam WIDTH = DATA_WIDTH_B;
    reg [35:0] memory [0:511];
    wire [13:0] write_addr = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1,
    ADA0};
    wire [13:0] read_addr = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1,
    ADB0};
    wire [17:0] b_write_data = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4,
    DIB3, DIB2, DIB1, DIB0};
    wire [35:0] write_data = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5,
    DIB4, DIB3, DIB2, DIB1, DIB0, DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7,
    DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0};
    reg [35:0] read_reg = 0, output_reg = 0;
    reg [17:0] a_read_reg = 0, a_output_reg = 0;
    wire [35:0] read_data = REGMODE_B == "OUTREG" ? output_reg : read_reg;
    wire [17:0] lower = read_data[17:0];
    assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0}
        = WIDTH == 36 ? lower : REGMODE_A == "OUTREG" ? a_output_reg : a_read_reg;
    assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0}
        = WIDTH == 36 ? read_data[35:18] : lower;
    // The position of bit n of a word in its row of 36 bits; narrow words skip every ninth bit.
    function integer bit_of(input [13:0] address, input integer width, n);
        if (width >= 9) bit_of = address[4:0] / (width / 9 * 8) * width + n;
        else bit_of = (address[4:0] / width * width + n) / 8 * 9 + (address[4:0] / width * width + n) % 8;
    endfunction
    // In INITVAL a word of 18 bits takes 20 bits, the first one the lowest.
    localparam [20479:0] TABLE = {
        INITVAL_3F, INITVAL_3E, INITVAL_3D, INITVAL_3C, INITVAL_3B, INITVAL_3A, INITVAL_39, INITVAL_38,
        INITVAL_37, INITVAL_36, INITVAL_35, INITVAL_34, INITVAL_33, INITVAL_32, INITVAL_31, INITVAL_30,
        INITVAL_2F, INITVAL_2E, INITVAL_2D, INITVAL_2C, INITVAL_2B, INITVAL_2A, INITVAL_29, INITVAL_28,
        INITVAL_27, INITVAL_26, INITVAL_25, INITVAL_24, INITVAL_23, INITVAL_22, INITVAL_21, INITVAL_20,
        INITVAL_1F, INITVAL_1E, INITVAL_1D, INITVAL_1C, INITVAL_1B, INITVAL_1A, INITVAL_19, INITVAL_18,
        INITVAL_17, INITVAL_16, INITVAL_15, INITVAL_14, INITVAL_13, INITVAL_12, INITVAL_11, INITVAL_10,
        INITVAL_0F, INITVAL_0E, INITVAL_0D, INITVAL_0C, INITVAL_0B, INITVAL_0A, INITVAL_09, INITVAL_08,
        INITVAL_07, INITVAL_06, INITVAL_05, INITVAL_04, INITVAL_03, INITVAL_02, INITVAL_01, INITVAL_00
    };
    integer n;
    initial
        if (TABLE != 0) for (n = 0; n < 512; n = n + 1)
            memory[n] = {TABLE[40 * n + 20 +: 18], TABLE[40 * n +: 18]};
`ifdef NOISE
        else for (n = 0; n < 512; n = n + 1) memory[n] = {$random, $random};
`endif
    always @(posedge CLKA) begin
        if (CEA && WEA) for (n = 0; n < DATA_WIDTH_A; n = n + 1)
            if (DATA_WIDTH_A < 18 || write_addr[n / 9])
                memory[write_addr[13:5]][
                    bit_of(DATA_WIDTH_A < 18 ? write_addr : write_addr & ~14'd3, DATA_WIDTH_A, n)
                ] <= write_data[n];
        if (CEA && DATA_WIDTH_A <= 18) for (n = 0; n < DATA_WIDTH_A; n = n + 1)
            a_read_reg[n] <= memory[write_addr[13:5]][bit_of(write_addr, DATA_WIDTH_A, n)];
        if (OCEA) a_output_reg <= a_read_reg;
    end
    always @(posedge CLKB) begin
        if (CEB && WEB) for (n = 0; n < WIDTH; n = n + 1)
            if (WIDTH < 18 || read_addr[n / 9])
                memory[read_addr[13:5]][bit_of(WIDTH < 18 ? read_addr : read_addr & ~14'd3, WIDTH, n)]
                    <= b_write_data[n % 18];
        if (CEB) for (n = 0; n < WIDTH; n = n + 1)
            read_reg[n] <= memory[read_addr[13:5]][bit_of(read_addr, WIDTH, n)];
        if (OCEB) output_reg <= read_reg;
    end
endmodule
