// Your IP core: a Wishbone slave with the Weft core, and with two registers of your own.
//
//   0x0000 to 0x0fff   the core; core/README.md is its data sheet
//   0x1000             leds: bits 7 to 0 are the output leds
//   0x1004             cycles: it counts the cycles of the clock; a write sets it to 0
//
// Other addresses answer with wb_err_o. CORE is the module of the core. Its name follows from
// design.toml, so the Makefile defines it.
module top (
    input  wire        wb_clk_i,
    input  wire        wb_rst_i,
    input  wire        wb_cyc_i,
    input  wire        wb_stb_i,
    input  wire        wb_we_i,
    input  wire [10:0] wb_adr_i,  // in words of 32 bits
    input  wire [3:0]  wb_sel_i,
    input  wire [31:0] wb_dat_i,
    output wire [31:0] wb_dat_o,
    output wire        wb_ack_o,
    output wire        wb_err_o,
    output wire        irq,
    output reg  [7:0]  leds
);
    wire        is_own = wb_adr_i[10];
    wire [31:0] core_data;
    wire        core_ack, core_err;

    `CORE core (
        .wb_clk_i(wb_clk_i),
        .wb_rst_i(wb_rst_i),
        .wb_cyc_i(wb_cyc_i && !is_own),
        .wb_stb_i(wb_stb_i && !is_own),
        .wb_we_i(wb_we_i),
        .wb_adr_i(wb_adr_i[9:0]),
        .wb_sel_i(wb_sel_i),
        .wb_dat_i(wb_dat_i),
        .wb_dat_o(core_data),
        .wb_ack_o(core_ack),
        .wb_err_o(core_err),
        .irq(irq)
    );

    // Your registers: each access takes two cycles.
    wire        is_leds   = wb_adr_i[9:0] == 10'd0;
    wire        is_cycles = wb_adr_i[9:0] == 10'd1;
    wire        own_start = wb_cyc_i && wb_stb_i && is_own && !own_ack && !own_err;
    reg  [31:0] cycles, own_data;
    reg         own_ack, own_err;

    always @(posedge wb_clk_i) begin
        own_ack  <= own_start && (is_leds || is_cycles);
        own_err  <= own_start && !(is_leds || is_cycles);
        own_data <= is_leds ? {24'd0, leds} : cycles;
        cycles   <= cycles + 32'd1;
        if (own_start && wb_we_i && is_leds && wb_sel_i[0]) leds <= wb_dat_i[7:0];
        if (own_start && wb_we_i && is_cycles) cycles <= 32'd0;
        if (wb_rst_i) begin
            own_ack <= 1'b0;
            own_err <= 1'b0;
            cycles  <= 32'd0;
            leds    <= 8'd0;
        end
    end

    assign wb_dat_o = is_own ? own_data : core_data;
    assign wb_ack_o = own_ack || core_ack;
    assign wb_err_o = own_err || core_err;
endmodule
