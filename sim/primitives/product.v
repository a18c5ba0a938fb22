// All pairs of operands through a multiplier: `multiplier`, of WIDTH x WIDTH bits with signs; WRONG or ALL RIGHT.
`timescale 1ns / 1ns

module product #(parameter WIDTH = 9, LATENCY = 3);
    reg clk = 0;
    reg [2 * WIDTH:0] count = 0;  // of pairs that went in
    wire signed [WIDTH - 1:0] a = count[WIDTH - 1:0], b = count[2 * WIDTH - 1:WIDTH];
    wire [2 * WIDTH - 1:0] found;
    reg signed [2 * WIDTH - 1:0] wanted [0:LATENCY - 1];
    integer n;

    multiplier dut (.clk(clk), .rst(1'b0), .a(a), .b(b), .product(found));

    always begin
        #1 clk = 1;
        #1 clk = 0;
        if (count >= LATENCY && found !== wanted[LATENCY - 1]) begin
            $display("WRONG: %0d, not %0d", $signed(found), wanted[LATENCY - 1]);
            $finish;
        end
        if (count == (1 << 2 * WIDTH) + LATENCY) begin
            $display("ALL RIGHT");
            $finish;
        end
    end
    always @(posedge clk) begin
        wanted[0] <= a * b;
        for (n = 1; n < LATENCY; n = n + 1) wanted[n] <= wanted[n - 1];
        count <= count + 1;
    end
endmodule
