package main

func Example() {
	main()
	// Output:
	//  200 of 1000
	//  400 of 1000
	//  600 of 1000
	//  800 of 1000
	// 1000 of 1000
	// COMPLETED: 997 thumbnails of 102693 bytes, 1000 keys, each called once: true
	// the last key:  summer/thumbnail/1000.1
}
