import type { Method } from '../../../rpc/server/method.ts'
import { operators, serverStream } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import { failedWith } from '../../../wire/errno.ts'
import { linkType, pcapHeader, pcapRecord } from '../../../wire/packet/pcap.ts'
import { gathered } from '../../gathered.ts'
import type { Kernel } from '../../kernel.ts'

const maxSnap = 65536
const maxFilter = 4096
/** Bytes buffered for a slow caller. Above this, reading pauses and packets queue in the kernel. */
const maxWaiting = 1 << 20
const chunk = 64 << 10
/** Link types without a link-layer header (ARPHRD_NONE, ARPHRD_RAWIP, ARPHRD_TUNNEL, ARPHRD_SIT). */
const headerless = new Set([65534, 519, 768, 769, 776])

/** Streams the packets of a link in pcap format. */
export const packetCapture = ({ capture, files, net }: Pick<Kernel, 'capture' | 'files' | 'net'>): Method =>
  serverStream('machine.MachineService/PacketCapture', operators, async function* (request, { signal }) {
    const { interface: name, promiscuous, snapLen, bpfFilter } = request
    if (bpfFilter.length > maxFilter)
      throw new RpcError('InvalidArgument', `packet filter of ${bpfFilter.length} instructions: at most ${maxFilter}`)
    const snapLength = snapLen === 0 ? maxSnap : Math.min(snapLen, maxSnap)
    const filter = bpfFilter.map(({ op, jt, jf, k }) => {
      if (op > 0xffff || jt > 0xff || jf > 0xff) throw new RpcError('InvalidArgument', 'packet filter: instruction out of range')
      return [op, jt, jf, k]
    })
    const index = indexOf(net, name)
    let waiting: Uint8Array[] = []
    let size = 0
    let wake = () => {}
    const receive = (bytes: Uint8Array, length: number) => {
      const record = pcapRecord({ time: Date.now() * 1000, length, bytes })
      waiting.push(record)
      size += record.length
      if (size > maxWaiting) open.pause()
      wake()
    }
    const open = openOn(capture, { index, name }, receive, { promiscuous, filter, snapLength })
    const stop = () => wake()
    signal.addEventListener('abort', stop)
    try {
      yield { bytes: pcapHeader(headerless.has(hardwareType(files, name)) ? linkType.raw : linkType.ethernet, snapLength) }
      while (!signal.aborted) {
        if (waiting.length === 0) {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
          continue
        }
        const taken = waiting
        waiting = []
        size = 0
        for await (const bytes of gathered(taken, chunk)) yield { bytes }
        open.resume()
      }
    } finally {
      signal.removeEventListener('abort', stop)
      open.close()
    }
  })

function indexOf({ openNetwork }: Kernel['net'], name: string): number {
  using network = openNetwork()
  const links = network.links()
  const found = links.find((link) => link.name === name)
  if (!found)
    throw new RpcError(
      'NotFound',
      `capture on "${name}": there is no such link, there are ${links
        .map((link) => link.name)
        .sort()
        .join(', ')}`,
    )
  return found.index
}

function hardwareType(files: Kernel['files'], name: string): number {
  return Number(files.readTextIfThere(`/sys/class/net/${name}/type`) ?? 1)
}

function openOn(capture: Kernel['capture'], ...[link, receive, options]: Parameters<Kernel['capture']['openCapture']>) {
  try {
    return capture.openCapture(link, receive, options)
  } catch (error) {
    if (failedWith(error, 'EINVAL') && options?.filter?.length)
      throw new RpcError('InvalidArgument', 'packet filter: rejected by the kernel, check its instructions')
    throw error
  }
}
