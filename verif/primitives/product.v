// All pairs of operands through `multiplier`, of WIDTH x WIDTH signed bits; prints PASS or FAIL.
`timescale 1ns / 1ns

module product #(parameter WIDTH = 9, LATENCY = 3);
    reg clk = 0;
    reg [2 * WIDTH:0] count = 0;  // pairs so far; a and b are its lower and upper half
    wire signed [WIDTH - 1:0] a = count[WIDTH - 1:0], b = count[2 * WIDTH - 1:WIDTH];
    wire [2 * WIDTH - 1:0] result;
    reg signed [2 * WIDTH - 1:0] expected [0:LATENCY - 1];
    integer n;

    multiplier dut (.clk(clk), .rst(1'b0), .a(a), .b(b), .product(result));

    always begin
        #1 clk = 1;
        #1 clk = 0;
        if (count >= LATENCY && result !== expected[LATENCY - 1]) begin
            $display("FAIL: %0d, not %0d", $signed(result), expected[LATENCY - 1]);
            $finish;
        end
        if (count == (1 << 2 * WIDTH) + LATENCY) begin
            $display("PASS");
            $finish;
        end
    end
    always @(posedge clk) begin
        expected[0] <= a * b;
        for (n = 1; n < LATENCY; n = n + 1) expected[n] <= expected[n - 1];
        count <= count + 1;
    end
endmodule
