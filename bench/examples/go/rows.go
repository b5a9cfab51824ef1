// The rows of the example `go`. `rows ROW` prints one number: nanoseconds an operation, or resident
// bytes a goroutine.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	many  = 10_000
	depth = 1_000
	joins = 1_000
	// A measurement repeats its row for at least this long.
	atLeast = 200 * time.Millisecond
)

// A row does its operations once, and returns their number.
var timed = map[string]func() int{
	"spawn_many_local": func() int {
		var left atomic.Int64
		left.Store(many)
		done := make(chan struct{})
		go func() {
			for i := 0; i < many; i++ {
				go func() {
					if left.Add(-1) == 0 {
						done <- struct{}{}
					}
				}()
			}
		}()
		<-done
		return many
	},
	"chained_spawn": func() int {
		done := make(chan struct{})
		var link func(int)
		link = func(left int) {
			if left == 0 {
				done <- struct{}{}
				return
			}
			go link(left - 1)
		}
		go link(depth - 1)
		<-done
		return depth
	},
	"spawn_join": func() int {
		done := make(chan struct{})
		go func() {
			for i := 0; i < joins; i++ {
				result := make(chan int, 1)
				go func() { result <- i }()
				<-result
			}
			done <- struct{}{}
		}()
		<-done
		return joins
	},
	"yield_many": func() int {
		const tasks, yields = 200, 1_000
		all(tasks, func(int) {
			for i := 0; i < yields; i++ {
				runtime.Gosched()
			}
		})
		return tasks * yields
	},
	"yield_one": func() int {
		all(1, func(int) {
			for i := 0; i < many; i++ {
				runtime.Gosched()
			}
		})
		return many
	},
	"ping_pong": func() int {
		const pairs = 1_000
		all(pairs, func(int) {
			there, back := make(chan struct{}, 1), make(chan struct{}, 1)
			go func() {
				<-there
				back <- struct{}{}
			}()
			there <- struct{}{}
			<-back
		})
		return pairs
	},
	"ring_100":  func() int { return ring(100, 1, 100) },
	"ring_1000": func() int { return ring(1_000, 100, 1) },
}

// Runs goroutines, and waits for all.
func all(count int, run func(int)) {
	var ends sync.WaitGroup
	ends.Add(count)
	for i := 0; i < count; i++ {
		go func(i int) {
			run(i)
			ends.Done()
		}(i)
	}
	ends.Wait()
}

// Passes messages round a ring of goroutines; returns the number of hops.
func ring(places, messages, rounds int) int {
	channels := make([]chan struct{}, places)
	for i := range channels {
		channels[i] = make(chan struct{}, messages)
	}
	for i := 0; i < messages; i++ {
		channels[i*places/messages] <- struct{}{}
	}
	all(places, func(i int) {
		// Each message passes each place once a round.
		for left := messages * rounds; left > 0; left-- {
			<-channels[i]
			// The last round ends where it began, so no channel is ever full.
			channels[(i+1)%places] <- struct{}{}
		}
	})
	return places * messages * rounds
}

// The resident bytes of this process.
func resident() int {
	text, err := os.ReadFile("/proc/self/statm")
	check(err)
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	check(err)
	return pages * os.Getpagesize()
}

// Starts goroutines that wait forever, and returns the resident bytes of one.
func bytes(count int, wait func(ready func(), i int)) int {
	start := func(count int) {
		var ready sync.WaitGroup
		ready.Add(count)
		for i := 0; i < count; i++ {
			go wait(ready.Done, i)
		}
		ready.Wait()
		runtime.GC()
	}
	start(warm)
	before := resident()
	start(count)
	return (resident() - before) / count
}

const (
	million = 1_000_000
	// The goroutines that let the runtime grow to its first size.
	warm = 100
)

var sized = map[string]func() int{
	"idle_task": func() int {
		never := make(chan struct{})
		return bytes(million, func(ready func(), _ int) {
			ready()
			<-never
		})
	},
	"sleepers_1m": func() int {
		return bytes(million, func(ready func(), _ int) {
			ready()
			time.Sleep(time.Hour)
		})
	},
	// A goroutine and a deadline for each of 9,000 connections; the clients have neither.
	"idle_conns": func() int {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		check(err)
		clients := make([]net.Conn, 0, 9_000+warm)
		connect := func(ready func(), _ int) {
			server, err := listener.Accept()
			check(err)
			check(server.SetDeadline(time.Now().Add(time.Hour)))
			ready()
			var buffer [1]byte
			_, _ = server.Read(buffer[:])
		}
		go func() {
			for {
				client, err := net.Dial("tcp", listener.Addr().String())
				check(err)
				clients = append(clients, client)
				if len(clients) == cap(clients) {
					return
				}
			}
		}()
		return bytes(9_000, connect)
	},
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	row := os.Args[1]
	runtime.GOMAXPROCS(2)
	if run, ok := sized[row]; ok {
		fmt.Println(run())
		return
	}
	run := timed[row]
	run()
	operations, begun := 0, time.Now()
	for time.Since(begun) < atLeast {
		operations += run()
	}
	fmt.Println(float64(time.Since(begun).Nanoseconds()) / float64(operations))
}
