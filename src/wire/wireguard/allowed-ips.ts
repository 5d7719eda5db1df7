/** Cryptokey routing: which peer has the longest prefix of an address (WireGuard, section 2). */

interface Node<T> {
  zero: Node<T> | undefined
  one: Node<T> | undefined
  value: T | undefined
}

const newNode = <T>(): Node<T> => ({ zero: undefined, one: undefined, value: undefined })

/** A table of prefixes of both families. A prefix belongs to whom it was given last. */
export class AllowedIps<T> {
  #v4 = newNode<T>()
  #v6 = newNode<T>()

  /** Gives a prefix to a value; bits after the prefix are ignored. */
  set(address: Uint8Array, bits: number, value: T): void {
    let node = address.length === 4 ? this.#v4 : this.#v6
    for (let index = 0; index < bits; index++) {
      const side = ((address[index >> 3] ?? 0) >> (7 - (index & 7))) & 1 ? 'one' : 'zero'
      let next = node[side]
      if (!next) {
        next = newNode()
        node[side] = next
      }
      node = next
    }
    node.value = value
  }

  /** Who has the address at an offset of a packet: 4 or 16 bytes. */
  find(packet: Uint8Array, at: number, length: 4 | 16): T | undefined {
    let node: Node<T> | undefined = length === 4 ? this.#v4 : this.#v6
    let found = node.value
    for (let index = 0; index < length * 8; index++) {
      node = ((packet[at + (index >> 3)] ?? 0) >> (7 - (index & 7))) & 1 ? node.one : node.zero
      if (!node) break
      if (node.value !== undefined) found = node.value
    }
    return found
  }

  /** Empties the table. */
  clear(): void {
    this.#v4 = newNode()
    this.#v6 = newNode()
  }
}
