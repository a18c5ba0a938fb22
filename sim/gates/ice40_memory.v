// The block RAM of an iCE40: 256 words of 16 bits, each port in words of 16, 8, 4 or 2 bits (mode 0 to 3).
// Source: Lattice FPGA-TN-02002, Memory Usage Guide for iCE40 Devices; FPGA-TN-02026, iCE Technology Library.
//
// The data sheet does not define the value of a bit that is read and written at the same edge; here it is random.

`default_nettype none

module ICESTORM_RAM #(
    parameter [1:0] WRITE_MODE = 0, READ_MODE = 0,
    parameter [0:0] NEG_CLK_W = 0, NEG_CLK_R = 0,
    parameter [255:0]
        INIT_0 = 0, INIT_1 = 0, INIT_2 = 0, INIT_3 = 0, INIT_4 = 0, INIT_5 = 0, INIT_6 = 0, INIT_7 = 0, INIT_8
        = 0, INIT_9 = 0, INIT_A = 0, INIT_B = 0, INIT_C = 0, INIT_D = 0, INIT_E = 0, INIT_F = 0
) (
    input wire RCLK, RCLKE, RE, WCLK, WCLKE, WE,
    input wire RADDR_10, RADDR_9, RADDR_8, RADDR_7, RADDR_6, RADDR_5, RADDR_4, RADDR_3, RADDR_2, RADDR_1,
    RADDR_0, WADDR_10, WADDR_9, WADDR_8, WADDR_7, WADDR_6, WADDR_5, WADDR_4, WADDR_3, WADDR_2, WADDR_1,
    WADDR_0,
    input wire WDATA_15, WDATA_14, WDATA_13, WDATA_12, WDATA_11, WDATA_10, WDATA_9, WDATA_8, WDATA_7, WDATA_6,
    WDATA_5, WDATA_4, WDATA_3, WDATA_2, WDATA_1, WDATA_0, MASK_15, MASK_14, MASK_13, MASK_12, MASK_11,
    MASK_10, MASK_9, MASK_8, MASK_7, MASK_6, MASK_5, MASK_4, MASK_3, MASK_2, MASK_1, MASK_0,
    output wire RDATA_15, RDATA_14, RDATA_13, RDATA_12, RDATA_11, RDATA_10, RDATA_9, RDATA_8, RDATA_7,
    RDATA_6, RDATA_5, RDATA_4, RDATA_3, RDATA_2, RDATA_1, RDATA_0
);
    // A narrower port accesses one of STEP neighbouring bits, and has its data at pin PIN of each group.
    localparam WRITE_STEP = 1 << WRITE_MODE, WRITE_PIN = WRITE_MODE == 0 ? 0 : (WRITE_STEP >> 1) - 1;
    localparam READ_STEP = 1 << READ_MODE, READ_PIN = READ_MODE == 0 ? 0 : (READ_STEP >> 1) - 1;
    wire [10:0] read_address = {
        RADDR_10, RADDR_9, RADDR_8, RADDR_7, RADDR_6, RADDR_5, RADDR_4, RADDR_3, RADDR_2, RADDR_1, RADDR_0
    };
    wire [10:0] write_address = {
        WADDR_10, WADDR_9, WADDR_8, WADDR_7, WADDR_6, WADDR_5, WADDR_4, WADDR_3, WADDR_2, WADDR_1, WADDR_0
    };
    wire [15:0] data = {WDATA_15, WDATA_14, WDATA_13, WDATA_12, WDATA_11, WDATA_10, WDATA_9, WDATA_8, WDATA_7, WDATA_6,
        WDATA_5, WDATA_4, WDATA_3, WDATA_2, WDATA_1, WDATA_0};
    wire [15:0] mask = {MASK_15, MASK_14, MASK_13, MASK_12, MASK_11, MASK_10, MASK_9, MASK_8, MASK_7, MASK_6, MASK_5, MASK_4,
        MASK_3, MASK_2, MASK_1, MASK_0};
    reg [15:0] memory [0:255];
    reg [15:0] word;
    reg [2:0] part;  // index of the bits that a narrow port reads
    wire [4095:0] init = {
        INIT_F, INIT_E, INIT_D, INIT_C, INIT_B, INIT_A, INIT_9, INIT_8, INIT_7, INIT_6, INIT_5, INIT_4,
        INIT_3, INIT_2, INIT_1, INIT_0
    };
    integer n;
    initial begin
        for (n = 0; n < 256; n = n + 1) memory[n] = init[16 * n +: 16];
        {word, part} = $random;
    end

    wire write_clock = WCLK ^ NEG_CLK_W, read_clock = RCLK ^ NEG_CLK_R;
    wire [15:0] write_data, write_enable, read_data;
    genvar k;
    generate for (k = 0; k < 16; k = k + 1) begin
        assign write_data[k] = data[k / WRITE_STEP * WRITE_STEP + WRITE_PIN];
        assign write_enable[k] = WE & WCLKE
            & (WRITE_MODE == 0 ? !mask[k] : write_address[10:8] % WRITE_STEP == k % WRITE_STEP);
        assign read_data[k] = k % READ_STEP == READ_PIN ? word[k - READ_PIN + part % READ_STEP] : 1'b0;
    end endgenerate
    assign {RDATA_15, RDATA_14, RDATA_13, RDATA_12, RDATA_11, RDATA_10, RDATA_9, RDATA_8, RDATA_7, RDATA_6,
        RDATA_5, RDATA_4, RDATA_3, RDATA_2, RDATA_1, RDATA_0} = read_data;
    wire collision = NEG_CLK_W == NEG_CLK_R && write_address[7:0] == read_address[7:0];
    wire [15:0] undefined_bits = collision ? write_enable : 16'b0;

    always @(posedge write_clock) if (|write_enable)
        memory[write_address[7:0]] <= memory[write_address[7:0]] & ~write_enable | write_data & write_enable;
    always @(posedge read_clock) if (RE & RCLKE) begin
        word <= |undefined_bits ? memory[read_address[7:0]] ^ $random & undefined_bits : memory[read_address[7:0]];
        part <= read_address[10:8];
    end
endmodule
