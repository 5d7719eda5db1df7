/** The sockets of a node, namespace by namespace: /proc/<pid>/net shows those of the network the process lives in. */

import { parseSockets, type SocketEntry } from '../../wire/proc/sockets.ts'
import type { Kernel } from '../kernel.ts'

type Files = Pick<Kernel['files'], 'list' | 'readlink' | 'readTextIfThere'>

/** The tables of sockets there are, named as under /proc/net. */
export const protocols = ['tcp', 'tcp6', 'udp', 'udp6', 'udplite', 'udplite6', 'raw', 'raw6'] as const

/** One of them. */
export type Protocol = (typeof protocols)[number]

/** A network to look into, by a process that lives in it. */
export interface NetworkOf {
  /** `cni-…` of a pod's network, empty for the node's own. */
  readonly name: string
  readonly pid: number | 'self'
}

/** A socket and where it is. */
export interface Socket extends SocketEntry {
  readonly protocol: Protocol
  readonly network: string
}

/** Who holds a socket. */
export interface Holder {
  readonly pid: number
  readonly name: string
}

/** The sockets of these protocols in a network; none when the kernel lacks a protocol or the network is gone. */
export function socketsIn(files: Files, { name, pid }: NetworkOf, wanted: readonly Protocol[]): Socket[] {
  return wanted.flatMap((protocol) => {
    const text = files.readTextIfThere(`/proc/${pid}/net/${protocol}`)
    return text ? parseSockets(text).map((socket) => ({ ...socket, protocol, network: name })) : []
  })
}

/** The processes that hold sockets, by the sockets' inodes; of several the one with the lowest number. */
export function socketHolders(files: Files): Map<number, Holder> {
  const holders = new Map<number, Holder>()
  const pids = files
    .list('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
  for (const pid of pids.toSorted((a, b) => a - b)) {
    let name: string | undefined
    for (const inode of inodesOf(files, pid)) {
      if (holders.has(inode)) continue
      name ??= files.readTextIfThere(`/proc/${pid}/comm`)?.trimEnd() ?? ''
      holders.set(inode, { pid, name })
    }
  }
  return holders
}

/** Inodes of the sockets a process has open; processes and files may vanish while they are looked at. */
function inodesOf(files: Files, pid: number): number[] {
  const maybe = <T>(look: () => T, otherwise: T): T => {
    try {
      return look()
    } catch {
      return otherwise
    }
  }
  return maybe(() => files.list(`/proc/${pid}/fd`), []).flatMap((fd) => {
    const [, inode] = /^socket:\[(\d+)\]$/.exec(maybe(() => files.readlink(`/proc/${pid}/fd/${fd}`), '')) ?? []
    return inode === undefined ? [] : [Number(inode)]
  })
}
