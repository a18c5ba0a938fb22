// Models of the iCE40 primitives that the hardware instantiates, written from the data sheets. They cover the modes in
// use: of the DSP block, one product of 16 x 16 bits or two of 8 x 8 bits, signed or unsigned.

`default_nettype none

// Source: Lattice FPGA-TN-02026, iCE Technology Library.
module SB_LUT4 #(parameter [15:0] LUT_INIT = 0) (input wire I0, I1, I2, I3, output wire O);
    assign O = LUT_INIT[{I3, I2, I1, I0}];
endmodule

module SB_CARRY (input wire I0, I1, CI, output wire CO);
    assign CO = I0 & I1 | (I0 ^ I1) & CI;
endmodule

// Half of the accumulator of the DSP block: 16 bits that load, hold, or add to themselves or to an input.
// Source: Lattice FPGA-TN-02007, DSP Function Usage Guide for iCE40 Devices.
module SB_MAC16_half #(parameter UPPERINPUT = 0, parameter [1:0] OUTPUT_SELECT = 0) (
    input wire CLK, CE, RST, LOAD, HOLD, SUBTRACT, CI,
    input wire [15:0] base, term, byte_product, product,
    output wire [15:0] O,
    output wire CO
);
    reg [15:0] sum = 0;
    wire [15:0] addend = UPPERINPUT ? base : sum;
    wire [16:0] total = {1'b0, term} + {1'b0, SUBTRACT ? ~addend : addend} + {16'b0, CI};
    wire [15:0] next = LOAD ? base : SUBTRACT ? ~total[15:0] : total[15:0];
    assign CO = total[16];
    assign O = OUTPUT_SELECT == 0 ? next : OUTPUT_SELECT == 1 ? sum : OUTPUT_SELECT == 2 ? byte_product : product;
    always @(posedge CLK or posedge RST) begin
        if (RST) sum <= 0;
        else if (CE & !HOLD) sum <= next;
    end
endmodule

module SB_MAC16 #(
    parameter [0:0] NEG_TRIGGER = 0, A_REG = 0, B_REG = 0, C_REG = 0, D_REG = 0,
    parameter [0:0] TOP_8x8_MULT_REG = 0, BOT_8x8_MULT_REG = 0,
    parameter [0:0] PIPELINE_16x16_MULT_REG1 = 0, PIPELINE_16x16_MULT_REG2 = 0,
    parameter [1:0] TOPOUTPUT_SELECT = 0, TOPADDSUB_LOWERINPUT = 0, TOPADDSUB_CARRYSELECT = 0,
    parameter [1:0] BOTOUTPUT_SELECT = 0, BOTADDSUB_LOWERINPUT = 0, BOTADDSUB_CARRYSELECT = 0,
    parameter [0:0] TOPADDSUB_UPPERINPUT = 0, BOTADDSUB_UPPERINPUT = 0,
    parameter [0:0] MODE_8x8 = 0, A_SIGNED = 0, B_SIGNED = 0
) (
    input wire CLK, CE,
    input wire [15:0] A, B, C, D,
    input wire AHOLD, BHOLD, CHOLD, DHOLD, IRSTTOP, IRSTBOT, ORSTTOP, ORSTBOT,
    input wire OLOADTOP, OLOADBOT, ADDSUBTOP, ADDSUBBOT, OHOLDTOP, OHOLDBOT, CI, ACCUMCI, SIGNEXTIN,
    output wire [31:0] O
);
    wire clock = CLK ^ NEG_TRIGGER;
    reg [15:0] a_reg = 0, b_reg = 0, c_reg = 0, d_reg = 0;
    wire [15:0] a = A_REG ? a_reg : A, b = B_REG ? b_reg : B, c = C_REG ? c_reg : C, d = D_REG ? d_reg : D;
    always @(posedge clock or posedge IRSTTOP) begin
        if (IRSTTOP) {a_reg, c_reg} <= 0;
        else if (CE) begin
            if (!AHOLD) a_reg <= A;
            if (!CHOLD) c_reg <= C;
        end
    end
    always @(posedge clock or posedge IRSTBOT) begin
        if (IRSTBOT) {b_reg, d_reg} <= 0;
        else if (CE) begin
            if (!BHOLD) b_reg <= B;
            if (!DHOLD) d_reg <= D;
        end
    end

    // The 16 x 16 bit product, with optional registers after its halves (one for each byte of B) and after their sum.
    wire [31:0] a_wide = {{16{A_SIGNED & a[15]}}, a};
    wire [31:0] upper_product = a_wide * {{24{B_SIGNED & b[15]}}, b[15:8]}, lower_product = a_wide * {24'b0, b[7:0]};
    reg [31:0] upper_reg = 0, lower_reg = 0, product_reg = 0;
    wire [31:0] product = PIPELINE_16x16_MULT_REG1 ? lower_reg + (upper_reg << 8)
        : lower_product + (upper_product << 8);
    wire [31:0] h = PIPELINE_16x16_MULT_REG2 ? product_reg : product;
    always @(posedge clock or posedge IRSTTOP) begin
        if (IRSTTOP) upper_reg <= 0;
        else if (CE) upper_reg <= upper_product;
    end
    always @(posedge clock or posedge IRSTBOT) begin
        if (IRSTBOT) {lower_reg, product_reg} <= 0;
        else if (CE) begin
            lower_reg <= lower_product;
            product_reg <= product;
        end
    end

    // Two 8 x 8 bit products, signed in both halves, each with an optional register.
    wire [15:0] f_product = {{8{A_SIGNED & a[15]}}, a[15:8]} * {{8{B_SIGNED & b[15]}}, b[15:8]};
    wire [15:0] g_product = {{8{A_SIGNED & a[7]}}, a[7:0]} * {{8{B_SIGNED & b[7]}}, b[7:0]};
    reg [15:0] f_reg = 0, g_reg = 0;
    always @(posedge clock or posedge IRSTTOP) begin
        if (IRSTTOP) f_reg <= 0;
        else if (CE) f_reg <= f_product;
    end
    always @(posedge clock or posedge IRSTBOT) begin
        if (IRSTBOT) g_reg <= 0;
        else if (CE) g_reg <= g_product;
    end
    wire [15:0] f = !MODE_8x8 ? 16'bx : TOP_8x8_MULT_REG ? f_reg : f_product;
    wire [15:0] g = !MODE_8x8 ? 16'bx : BOT_8x8_MULT_REG ? g_reg : g_product;

    wire [15:0] low_term = BOTADDSUB_LOWERINPUT == 0 ? b : BOTADDSUB_LOWERINPUT == 1 ? g
        : BOTADDSUB_LOWERINPUT == 2 ? h[15:0] : 16'bx;
    wire [15:0] high_term = TOPADDSUB_LOWERINPUT == 0 ? a : TOPADDSUB_LOWERINPUT == 1 ? f
        : TOPADDSUB_LOWERINPUT == 2 ? h[31:16] : 16'bx;
    wire low_carry_out, high_carry_out;
    wire low_carry_in = BOTADDSUB_CARRYSELECT == 0 ? 1'b0 : BOTADDSUB_CARRYSELECT == 1 ? 1'b1
        : BOTADDSUB_CARRYSELECT == 2 ? ACCUMCI : CI;
    wire high_carry_in = TOPADDSUB_CARRYSELECT == 0 ? 1'b0 : TOPADDSUB_CARRYSELECT == 1 ? 1'b1
        : TOPADDSUB_CARRYSELECT == 2 ? low_carry_out : low_carry_out ^ ADDSUBBOT;
    SB_MAC16_half #(BOTADDSUB_UPPERINPUT, BOTOUTPUT_SELECT) low (
        clock, CE, ORSTBOT, OLOADBOT, OHOLDBOT, ADDSUBBOT, low_carry_in, d, low_term, g, h[15:0], O[15:0],
        low_carry_out
    );
    SB_MAC16_half #(TOPADDSUB_UPPERINPUT, TOPOUTPUT_SELECT) high (
        clock, CE, ORSTTOP, OLOADTOP, OHOLDTOP, ADDSUBTOP, high_carry_in, c, high_term, f, h[31:16], O[31:16],
        high_carry_out
    );
endmodule

// Source: Lattice FPGA-TN-02022, iCE40 SPRAM Usage Guide. Its content is undefined until it is written. A bit of the
// mask enables four bits. Its modes of lower power are not modelled.
module SB_SPRAM256KA (
    input wire [13:0] ADDRESS,
    input wire [15:0] DATAIN,
    input wire [3:0] MASKWREN,
    input wire WREN, CHIPSELECT, CLOCK, STANDBY, SLEEP, POWEROFF,
    output reg [15:0] DATAOUT
);
    wire on = POWEROFF & !SLEEP & !STANDBY;
    reg [15:0] words [0:16383];
    integer n;
    always @(posedge CLOCK) if (!on) DATAOUT <= 16'bx;
    else if (CHIPSELECT) begin
        DATAOUT <= WREN ? 16'bx : words[ADDRESS];
        for (n = 0; n < 4; n = n + 1) if (WREN && MASKWREN[n]) words[ADDRESS][4 * n +: 4] <= DATAIN[4 * n +: 4];
    end
endmodule
