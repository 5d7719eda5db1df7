/** A name server for measurements: one A record with a TTL of one hour for every query. Listens on 127.0.0.1:53 of its namespace. */
import { answerAddresses } from '../../src/os/network/dns/message.ts'

await Bun.udpSocket({
  hostname: '127.0.0.1',
  port: 53,
  socket: {
    data(socket, query, port, address) {
      socket.send(answerAddresses(query, [Uint8Array.of(10, 0, 0, 1)], 3600), port, address)
    },
  },
})
console.log('ready')
