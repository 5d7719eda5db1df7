/** The TUN link of a tunnel. Large packets are exchanged with the kernel if it can, which costs far less than as many small ones. */
import { linkMtu, openTun } from '../../linux/net/tap.ts'
import { type Polled, readable, readInto, Vectors } from '../../linux/poll.ts'
import { failedWith } from '../../wire/errno.ts'
import { WordSums } from '../../wire/packet/checksum.ts'
import { type Merged, maxPieces, PacketMerger } from '../../wire/packet/merge.ts'
import { type Outgoing, splitPacket } from '../../wire/packet/split.ts'
import { virtioHeaderLength, writeVirtioHeader } from '../../wire/packet/virtio-header.ts'

/** Bytes of the longest read: a header and an IPv4 packet, rounded up. */
export const readSize = 65_536 + 16

/** A link that is there as long as this is. */
export class TunnelLink {
  readonly polled: Polled
  readonly #name: string
  readonly #segments: boolean
  /** Whether the kernel takes large packets. */
  #merges: boolean
  readonly #merger = new PacketMerger()
  readonly #sums = new WordSums()
  readonly #vectors = new Vectors(maxPieces + 1)
  readonly #header = new Uint8Array(virtioHeaderLength)

  /** Creates it. Throws SystemError. */
  constructor(name: string) {
    const { fd, segments } = openTun(name)
    this.polled = { fd, events: readable, happened: 0 }
    this.#name = name
    this.#segments = segments
    this.#merges = segments
  }

  /** Its MTU in bytes, 0 when the link has been renamed or moved to another namespace than that of a socket. */
  mtu(socket: number): number {
    try {
      return linkMtu(socket, this.#name)
    } catch (error) {
      if (failedWith(error, 'ENODEV')) return 0
      throw error
    }
  }

  /** Reads once into the first `readSize` bytes of a buffer and hands over the packets; false when nothing waits. Throws SystemError. */
  read(buffer: Uint8Array, out: Outgoing): boolean {
    const length = readInto(this.polled.fd, buffer, 0, readSize)
    if (length === undefined) return false
    if (this.#segments) splitPacket(buffer, 0, length, this.#sums, out)
    else {
      const to = out.place(length)
      buffer.copyWithin(to, 0, length)
      out.take(to, length)
    }
    return true
  }

  /** Takes a packet for the network stack, whose bytes have to stay until `flush`. */
  deliver(buffer: Uint8Array, at: number, length: number): void {
    if (this.#merges) this.#merger.add(buffer, at, length)
    else this.#write({ header: undefined, pieces: [{ buffer, at, length }] })
  }

  /** Writes what was delivered. Throws SystemError. */
  flush(): void {
    this.#merger.flush((packet) => this.#write(packet))
  }

  #write({ header, pieces }: Merged): void {
    this.#vectors.clear()
    if (this.#segments) {
      writeVirtioHeader(this.#header, header)
      this.#vectors.add(this.#header, 0, virtioHeaderLength)
    }
    for (const { buffer, at, length } of pieces) this.#vectors.add(buffer, at, length)
    try {
      this.#vectors.write(this.polled.fd)
    } catch (error) {
      if (!failedWith(error, 'EIO', 'EINVAL', 'ENOBUFS', 'ENOMEM')) throw error // EIO: the link is down
      if (header && failedWith(error, 'EINVAL')) this.#merges = false
    }
  }
}
