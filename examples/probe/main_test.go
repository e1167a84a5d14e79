package main

func Example() {
	main()
	// Output:
	// call   charge 4990 cents, reference order-7/PAY/charge/1
	// probe  order-7/PAY/charge/1 has happened: R1
	// done   order-7/PAY COMPLETED with receipt R1; charged 1 time
}
