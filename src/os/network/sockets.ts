/** Reads the sockets of each network namespace: /proc/<pid>/net shows those of the namespace the process lives in. */

import { parseSockets, type SocketEntry } from '../../wire/proc/sockets.ts'
import type { Kernel } from '../kernel.ts'

type Files = Pick<Kernel['files'], 'list' | 'readlink' | 'readTextIfThere'>

/** The socket tables under /proc/net. */
export const protocols = ['tcp', 'tcp6', 'udp', 'udp6', 'udplite', 'udplite6', 'raw', 'raw6'] as const

/** One of the protocols. */
export type Protocol = (typeof protocols)[number]

/** A network namespace, identified by a process that lives in it. */
export interface NetworkOf {
  /** `cni-…` for a pod's namespace, empty for the node's own. */
  readonly name: string
  readonly pid: number | 'self'
}

/** A socket and its network namespace. */
export interface Socket extends SocketEntry {
  readonly protocol: Protocol
  readonly network: string
}

/** The process that owns a socket. */
export interface Holder {
  readonly pid: number
  readonly name: string
}

/** The sockets of these protocols in a namespace; none if the kernel lacks a protocol or the namespace no longer exists. */
export function socketsIn(files: Files, { name, pid }: NetworkOf, wanted: readonly Protocol[]): Socket[] {
  return wanted.flatMap((protocol) => {
    const text = files.readTextIfThere(`/proc/${pid}/net/${protocol}`)
    return text ? parseSockets(text).map((socket) => ({ ...socket, protocol, network: name })) : []
  })
}

/** The owners of sockets by inode. If several processes share a socket, the lowest pid is used. */
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

/** Inodes of the sockets a process has open. Processes and files may vanish during the read. */
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
