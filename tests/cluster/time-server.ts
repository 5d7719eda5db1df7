import { ntpMode, readNtp, toNtpTime, writeNtp } from '../../src/wire/ntp.ts'

/** A time server that is a minute ahead. */
export async function timeServer(hostname: string): Promise<{ close(): void }> {
  return await Bun.udpSocket({
    hostname,
    port: 123,
    socket: {
      data(socket, datagram, port, address) {
        const now = toNtpTime(BigInt(Date.now() + 60_000) * 1_000_000n)
        const { transmitTime } = readNtp(datagram)
        const answer = { mode: ntpMode.server, stratum: 1, originTime: transmitTime, receiveTime: now, transmitTime: now }
        socket.send(writeNtp(answer), port, address)
      },
    },
  })
}
