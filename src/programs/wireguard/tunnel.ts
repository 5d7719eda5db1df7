/** The sockets around a WireGuard device: a TUN link, a UDP port of both families, and the loop that moves packets between them. */
import { PacketCipher } from '../../linux/chacha.ts'
import { DatagramPort } from '../../linux/net/datagrams.ts'
import { listenUnix } from '../../linux/net/unix-listener.ts'
import { type Polled, poll, readable } from '../../linux/poll.ts'
import { failedWith } from '../../wire/errno.ts'
import type { Outgoing } from '../../wire/packet/split.ts'
import { configure, report } from '../../wire/wireguard/configure.ts'
import { Device, headroom, tailroom } from '../../wire/wireguard/device.ts'
import { tagLength } from '../../wire/wireguard/message.ts'
import { paddedLength } from '../../wire/wireguard/packet.ts'
import type { Endpoint } from '../../wire/wireguard/peer.ts'
import { family } from '../../wire/wireguard/socket-address.ts'
import { type DeviceChange, writeGet } from '../../wire/wireguard/uapi.ts'
import { ControlSocket } from './control.ts'
import { readSize, TunnelLink } from './link.ts'

/** Reads of the link before what was queued is sent. */
const burst = 64
/** Bytes of packets that are queued at a time: little enough for the processor's caches. */
const queueSize = 512 * 1024
/** Milliseconds between two looks at the link's MTU. */
const mtuInterval = 1000
/** Rounds of packets between two looks at configuration and timers. */
const roundsPerPoll = 16

/** A tunnel that runs until its link is removed. */
export class Tunnel {
  readonly #link: TunnelLink
  readonly #control: ControlSocket
  readonly #device: Device
  /** Room for one read, and behind it for packets that are queued, one behind the other. */
  readonly #buffer = new Uint8Array(readSize + queueSize)
  #end = readSize
  /** Where packets of the link go: into the queue, and so that equal ones to one peer can be sent as one message. */
  readonly #outgoing: Outgoing = {
    place: (length) => {
      if (this.#end + headroom + length + tailroom > this.#buffer.length) this.#flush()
      return this.#end + headroom
    },
    take: (at, length) => {
      this.#device.packet(this.#buffer, at, length)
      this.#end = at + paddedLength(length, this.#device.mtu) + tagLength
    },
  }
  #nextMtu = 0
  /** The clock's time at the start of the round, in milliseconds: reading it for each packet would cost more than routing it. */
  #now = performance.now()
  #lastSource: Endpoint | undefined
  #ports: { inet: DatagramPort; inet6: DatagramPort | undefined }
  #privateKey = ''
  #mark = 0

  /** Creates the link and listens for its configuration at a path. Throws SystemError. */
  constructor(name: string, controlPath: string) {
    this.#link = new TunnelLink(name)
    this.#ports = openPorts(0)
    this.#device = new Device(
      {
        send: (buffer, at, length, { socketAddress }) =>
          (socketAddress[0] === family.inet ? this.#ports.inet : this.#ports.inet6)?.queue(buffer, at, length, socketAddress),
        deliver: (buffer, at, length) => this.#link.deliver(buffer, at, length),
      },
      {
        now: () => this.#now,
        wallClock: () => Date.now(),
        randomIndex: () => crypto.getRandomValues(new Uint32Array(1))[0] ?? 0,
        cipher: (key) => new PacketCipher(key),
      },
    )
    this.#control = new ControlSocket(listenUnix(controlPath), { get: () => this.#report(), set: (change) => this.#change(change) })
  }

  /** Moves packets; returns when the link is gone. */
  run(): void {
    try {
      for (;;) {
        const timeout = this.#timeout()
        const { inet, inet6 } = this.#ports
        const ports = [inet, ...(inet6 ? [inet6] : [])].map(({ fd }) => waitsToRead(fd))
        this.#lookAtMtu()
        poll([this.#link.polled, ...ports, ...this.#control.polled], timeout)
        for (let round = 0; round < roundsPerPoll && this.#round() > 0; round++);
        this.#control.serve()
        this.#flush()
      }
    } catch (error) {
      if (!failedWith(error, 'EBADFD', 'EBADF', 'ENODEV')) throw error
    }
  }

  #lookAtMtu(): void {
    if (this.#now < this.#nextMtu) return
    this.#nextMtu = this.#now + mtuInterval
    this.#device.mtu = this.#link.mtu(this.#ports.inet.fd)
  }

  /** Moves what waits; returns 0 when nothing did. */
  #round(): number {
    const receive = (datagram: Uint8Array, from: Uint8Array) => this.#device.datagram(datagram, this.#source(from))
    let moved = 0
    this.#now = performance.now()
    for (const port of [this.#ports.inet, this.#ports.inet6]) {
      moved += port?.receive(receive) ?? 0
      this.#link.flush() // packets lie in the buffers of datagrams, and so do answers
      this.#flush()
    }
    for (let read = 0; read < burst && this.#link.read(this.#buffer, this.#outgoing); read++) moved++
    this.#flush()
    return moved
  }

  #flush(): void {
    this.#ports.inet.flush()
    this.#ports.inet6?.flush()
    this.#end = readSize
  }

  #timeout(): number {
    this.#now = performance.now()
    const next = this.#device.tick()
    this.#flush()
    return next === Number.POSITIVE_INFINITY ? -1 : Math.max(0, Math.ceil(next - this.#now))
  }

  /** The endpoint of a source address. Most datagrams come from the same one as the one before. */
  #source(address: Uint8Array): Endpoint {
    if (!this.#lastSource || Buffer.compare(this.#lastSource.socketAddress, address) !== 0)
      this.#lastSource = { socketAddress: new Uint8Array(address) } // a copy: slice() of a Buffer is a view
    return this.#lastSource
  }

  #report(): string {
    return writeGet(report(this.#device, { privateKey: this.#privateKey, listenPort: this.#ports.inet.port, firewallMark: this.#mark }))
  }

  #change(change: DeviceChange): void {
    if (change.listenPort !== undefined && change.listenPort !== this.#ports.inet.port) {
      const opened = openPorts(change.listenPort)
      for (const port of [this.#ports.inet, this.#ports.inet6]) port?.close()
      this.#ports = opened
      this.#setMark(this.#mark)
    }
    if (change.firewallMark !== undefined) this.#setMark(change.firewallMark)
    if (change.privateKey !== undefined) this.#privateKey = change.privateKey
    configure(this.#device, change)
  }

  #setMark(mark: number): void {
    for (const port of [this.#ports.inet, this.#ports.inet6]) port?.setMark(mark)
    this.#mark = mark
  }
}

const waitsToRead = (fd: number): Polled => ({ fd, events: readable, happened: 0 })

/** Opens a port for both families; a kernel may have no IPv6. */
function openPorts(port: number): { inet: DatagramPort; inet6: DatagramPort | undefined } {
  const inet = new DatagramPort('inet', port)
  try {
    return { inet, inet6: new DatagramPort('inet6', inet.port) }
  } catch (error) {
    if (failedWith(error, 'EAFNOSUPPORT')) return { inet, inet6: undefined }
    inet.close()
    throw error
  }
}
