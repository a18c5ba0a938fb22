// A SoC with a PicoRV32 (a RISC-V processor), memory and a Weft core.
//
// Macros: CORE is the core's module, DMA is defined if it is a bus master, BYTES is the width of
// its stream. CORE2 is the module of a second core, if there is one, which is no bus master: then
// the processor has interrupts, 3 and 4 for the cores. Memory map: 0x0000_0000 memory (1 MiB),
// 0x1000_0000 console, 0x3000_0000 core, 0x3100_0000 second core. The console prints the words
// written to its first word; a write to its second word ends the run.
`default_nettype none

module soc (input wire clk, input wire resetn);
  localparam WORDS = 1 << 18;

  // The processor's bus has one access at a time, so its address selects the response.
  wire awvalid, wvalid, bready, arvalid, rready;
  wire [31:0] awaddr, wdata, araddr;
  wire [3:0] wstrb;
  wire awready, wready, bvalid, arready, rvalid;
  wire [31:0] rdata;
  wire trap, core_irq, core2_irq;
`ifdef CORE2
  localparam INTERRUPTS = 1;
`else
  localparam INTERRUPTS = 0;
`endif

  picorv32_axi #(
    .BARREL_SHIFTER(1), .ENABLE_FAST_MUL(1), .ENABLE_DIV(1), .STACKADDR(32'h0010_0000),
    .ENABLE_IRQ(INTERRUPTS), .LATCHED_IRQ(0)
  ) cpu (
    .clk(clk), .resetn(resetn), .trap(trap),
    .mem_axi_awvalid(awvalid), .mem_axi_awready(awready), .mem_axi_awaddr(awaddr),
    .mem_axi_wvalid(wvalid), .mem_axi_wready(wready), .mem_axi_wdata(wdata),
    .mem_axi_wstrb(wstrb), .mem_axi_bvalid(bvalid), .mem_axi_bready(bready),
    .mem_axi_arvalid(arvalid), .mem_axi_arready(arready), .mem_axi_araddr(araddr),
    .mem_axi_rvalid(rvalid), .mem_axi_rready(rready), .mem_axi_rdata(rdata),
    .pcpi_wr(1'b0), .pcpi_rd(32'd0), .pcpi_wait(1'b0), .pcpi_ready(1'b0), .irq({27'd0, core2_irq, core_irq, 3'd0})
  );

  wire write_cores = awaddr[29], read_cores = araddr[29], write_console = awaddr[28] & ~awaddr[29];
  wire write_core = write_cores & ~awaddr[24], write_core2 = write_cores & awaddr[24];
  wire read_core = read_cores & ~araddr[24], read_core2 = read_cores & araddr[24];

  // Memory, with a read latency of one cycle.
  reg [31:0] memory [0:WORDS-1];
  reg memory_bvalid = 0, memory_rvalid = 0;
  reg [31:0] memory_rdata;
  wire memory_write = awvalid & wvalid & ~write_cores & ~memory_bvalid;
  wire memory_read = arvalid & ~read_cores & ~memory_rvalid;
  wire [17:0] write_word = awaddr[19:2];
  integer i;

  initial $readmemh("firmware.hex", memory);

  always @(posedge clk) begin
    memory_bvalid <= resetn & (memory_write | memory_bvalid & ~bready);
    memory_rvalid <= resetn & (memory_read | memory_rvalid & ~rready);
    if (memory_read)
      memory_rdata <= memory[araddr[19:2]];
    if (memory_write & ~write_console)
      for (i = 0; i < 4; i = i + 1)
        if (wstrb[i])
          memory[write_word][8*i +: 8] <= wdata[8*i +: 8];
    if (memory_write & write_console & ~awaddr[2])
      $display("%0d", wdata);
    if (memory_write & write_console & awaddr[2]) begin
      $display("exit %0d", wdata);
      $finish;
    end
    if (trap) begin
      $display("trap");
      $finish;
    end
  end

  wire core_awready, core_wready, core_bvalid, core_arready, core_rvalid;
  wire core2_awready, core2_wready, core2_bvalid, core2_arready, core2_rvalid;
  wire [31:0] core_rdata, core2_rdata;
  assign awready = write_core2 ? core2_awready : write_core ? core_awready : memory_write;
  assign wready = write_core2 ? core2_wready : write_core ? core_wready : memory_write;
  assign bvalid = memory_bvalid | core_bvalid | core2_bvalid;
  assign arready = read_core2 ? core2_arready : read_core ? core_arready : memory_read;
  assign rvalid = memory_rvalid | core_rvalid | core2_rvalid;
  assign rdata = memory_rvalid ? memory_rdata : core_rvalid ? core_rdata : core2_rdata;

`ifdef CORE2
  `CORE2 core2 (
    .aclk(clk), .aresetn(resetn), .irq(core2_irq),
    .s_axil_awvalid(awvalid & write_core2), .s_axil_awready(core2_awready),
    .s_axil_awaddr(awaddr[11:0]), .s_axil_awprot(3'd0),
    .s_axil_wvalid(wvalid & write_core2), .s_axil_wready(core2_wready), .s_axil_wdata(wdata),
    .s_axil_wstrb(wstrb), .s_axil_bvalid(core2_bvalid), .s_axil_bready(bready), .s_axil_bresp(),
    .s_axil_arvalid(arvalid & read_core2), .s_axil_arready(core2_arready),
    .s_axil_araddr(araddr[11:0]), .s_axil_arprot(3'd0),
    .s_axil_rvalid(core2_rvalid), .s_axil_rready(rready), .s_axil_rdata(core2_rdata),
    .s_axil_rresp()
  );
`else
  assign {core2_awready, core2_wready, core2_bvalid, core2_arready, core2_rvalid, core2_irq} = 6'd0;
  assign core2_rdata = 32'd0;
`endif

`ifdef DMA
  // A second port of the memory for the bus master: one burst at a time, one beat a cycle.
  localparam BEAT = `BYTES / 4;
  wire m_arvalid, m_rready, m_awvalid, m_wvalid, m_wlast, m_bready, m_arid, m_awid;
  wire [31:0] m_araddr, m_awaddr;
  wire [7:0] m_arlen, m_awlen;
  wire [2:0] m_arsize, m_awsize;
  wire [8*`BYTES-1:0] m_wdata;
  wire [`BYTES-1:0] m_wstrb;
  reg [8*`BYTES-1:0] m_rdata;
  reg m_rvalid = 0, m_rlast = 0, m_bvalid = 0, reading = 0, writing = 0, rid, bid;
  reg [17:0] read_word, store_word;
  reg [7:0] beats_left;
  integer j, l;

  always @(posedge clk) begin
    if (m_arvalid & ~reading) begin
      reading <= 1;
      rid <= m_arid;
      read_word <= m_araddr[19:2] / BEAT * BEAT;
      beats_left <= m_arlen;
      if (8'd1 << m_arsize != `BYTES)
        $fatal(1, "the core started a burst of narrow beats");
    end
    if (m_rready)
      m_rvalid <= 0;
    if (reading & (~m_rvalid | m_rready)) begin
      for (l = 0; l < BEAT; l = l + 1)
        m_rdata[32*l +: 32] <= memory[read_word + l];
      m_rvalid <= 1;
      m_rlast <= beats_left == 0;
      read_word <= read_word + BEAT;
      beats_left <= beats_left - 1;
      reading <= beats_left != 0;
    end
    if (m_awvalid & ~writing & ~m_bvalid) begin
      writing <= 1;
      bid <= m_awid;
      store_word <= m_awaddr[19:2] / BEAT * BEAT;
    end
    if (m_bready)
      m_bvalid <= 0;
    if (m_wvalid & writing & ~m_bvalid) begin
      for (l = 0; l < BEAT; l = l + 1)
        for (j = 0; j < 4; j = j + 1)
          if (m_wstrb[4*l + j])
            memory[store_word + l][8*j +: 8] <= m_wdata[8*(4*l + j) +: 8];
      store_word <= store_word + BEAT;
      m_bvalid <= m_wlast;
      writing <= ~m_wlast;
    end
    if (~resetn) begin
      {m_rvalid, m_bvalid, reading, writing} <= 0;
    end
  end
`endif

  `CORE core (
    .aclk(clk), .aresetn(resetn), .irq(core_irq),
    .s_axil_awvalid(awvalid & write_core), .s_axil_awready(core_awready),
    .s_axil_awaddr(awaddr[11:0]), .s_axil_awprot(3'd0),
    .s_axil_wvalid(wvalid & write_core), .s_axil_wready(core_wready), .s_axil_wdata(wdata),
    .s_axil_wstrb(wstrb), .s_axil_bvalid(core_bvalid), .s_axil_bready(bready), .s_axil_bresp(),
    .s_axil_arvalid(arvalid & read_core), .s_axil_arready(core_arready),
    .s_axil_araddr(araddr[11:0]), .s_axil_arprot(3'd0),
    .s_axil_rvalid(core_rvalid), .s_axil_rready(rready), .s_axil_rdata(core_rdata), .s_axil_rresp()
`ifdef DMA
    , .m_axi_arvalid(m_arvalid), .m_axi_arready(~reading), .m_axi_araddr(m_araddr),
    .m_axi_arlen(m_arlen), .m_axi_arsize(m_arsize), .m_axi_arid(m_arid), .m_axi_arburst(),
    .m_axi_arlock(), .m_axi_arcache(), .m_axi_arprot(), .m_axi_arqos(),
    .m_axi_rvalid(m_rvalid), .m_axi_rready(m_rready), .m_axi_rdata(m_rdata), .m_axi_rid(rid),
    .m_axi_rresp(2'd0), .m_axi_rlast(m_rlast),
    .m_axi_awvalid(m_awvalid), .m_axi_awready(~writing & ~m_bvalid), .m_axi_awaddr(m_awaddr),
    .m_axi_awlen(m_awlen), .m_axi_awsize(m_awsize), .m_axi_awid(m_awid), .m_axi_awburst(),
    .m_axi_awlock(), .m_axi_awcache(), .m_axi_awprot(), .m_axi_awqos(),
    .m_axi_wvalid(m_wvalid), .m_axi_wready(writing & ~m_bvalid), .m_axi_wdata(m_wdata),
    .m_axi_wstrb(m_wstrb), .m_axi_wlast(m_wlast),
    .m_axi_bvalid(m_bvalid), .m_axi_bready(m_bready), .m_axi_bid(bid), .m_axi_bresp(2'd0)
`endif
  );
endmodule
