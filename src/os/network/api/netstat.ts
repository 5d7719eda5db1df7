import { machine as enums } from '../../../rpc/enums.ts'
import type { machine } from '../../../rpc/messages.ts'
import { type Method, readers, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Kernel } from '../../kernel.ts'
import { type Holder, type NetworkOf, type Protocol, protocols, type Socket, socketHolders, socketsIn } from '../sockets.ts'

const usual: readonly Protocol[] = ['tcp', 'tcp6', 'udp', 'udp6']
const { CONNECTED, LISTENING } = enums.NetstatRequest.Filter

/** Lists the sockets of the node and, when requested, of its pods, with the processes that own them. */
export const netstat = ({ files }: Pick<Kernel, 'files'>, pods: () => Promise<NetworkOf[]>): Method =>
  unary('machine.MachineService/Netstat', readers, async ({ filter, feature, l4proto, netns }) => {
    const wanted = l4proto ? protocols.filter((protocol) => l4proto[protocol]) : usual
    const networks = await networksOf(netns, pods)
    const sockets = networks.flatMap((network) => socketsIn(files, network, wanted)).filter((socket) => passes(socket, filter))
    const holders = feature?.pid ? socketHolders(files) : undefined
    return { messages: [{ connectrecord: sockets.map((socket) => record(socket, holders)) }] }
  })

async function networksOf(requested: machine.NetstatRequest.NetNS | undefined, pods: () => Promise<NetworkOf[]>): Promise<NetworkOf[]> {
  const own: NetworkOf = { name: '', pid: 'self' }
  if (!requested) return [own]
  const { hostnetwork, netns, allnetns } = requested
  const others = allnetns || netns.length > 0 ? await pods() : []
  const missing = netns.find((name) => !others.some((other) => other.name === name))
  if (missing !== undefined) throw new RpcError('NotFound', `netstat: no pod here has the network namespace "${missing}"`)
  return [...(hostnetwork || allnetns ? [own] : []), ...others.filter(({ name }) => allnetns || netns.includes(name))]
}

/** A connected socket has a peer address and port, a listening one has neither. Datagram sockets follow the same rule. */
function passes({ remoteIp, remotePort }: Socket, filter: number): boolean {
  const unspecified = /^[0:.]*$/.test(unmapped(remoteIp))
  if (filter === CONNECTED) return !unspecified && remotePort !== 0
  return filter !== LISTENING || (unspecified && remotePort === 0)
}

function record(socket: Socket, holders: Map<number, Holder> | undefined): machine.ConnectRecord {
  return {
    l4proto: socket.protocol,
    localip: unmapped(socket.localIp),
    localport: socket.localPort,
    remoteip: unmapped(socket.remoteIp),
    remoteport: socket.remotePort,
    state: socket.state,
    txqueue: socket.txQueue,
    rxqueue: socket.rxQueue,
    tr: socket.timer,
    timerwhen: socket.timerWhen,
    retrnsmt: socket.retransmits,
    uid: socket.uid,
    timeout: socket.timeout,
    inode: socket.inode,
    ref: socket.references,
    pointer: Number.parseInt(socket.pointer, 16) || 0,
    // Clients dereference this field without a null check.
    process: holders?.get(socket.inode) ?? { pid: 0, name: '' },
    netns: socket.network,
  }
}

/** Strips the IPv4-mapped prefix (`::ffff:`) from the peer of a dual-stack socket. */
function unmapped(ip: string): string {
  return ip.startsWith('::ffff:') && ip.includes('.') ? ip.slice('::ffff:'.length) : ip
}
