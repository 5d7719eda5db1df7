import type { FileHandle } from 'node:fs/promises'
import { open } from 'node:fs/promises'
import { Command, Option } from 'commander'
import { timerDelay } from '../../../../timing/timer.ts'
import { codeOf } from '../../../../wire/errno.ts'
import { FilterError, type FilterInstruction, packetFilter } from '../../../../wire/packet/filter.ts'
import { linkType, PcapReader } from '../../../../wire/packet/pcap.ts'
import { packetSummary } from '../../../../wire/packet/summary.ts'
import type { Cluster } from '../../cluster.ts'
import { UsageError } from '../../failure.ts'
import { duration, integer } from '../../flags.ts'
import { type Io, remark } from '../../io.ts'
import { humanSize } from '../../output/units.ts'

interface PcapOptions {
  bpfFilter: string
  duration: number
  interface: string
  output: string
  promiscuous?: boolean
  snaplen: number
}

const examples = `
Examples:
  talosctl pcap -n 10.5.0.2                                        the packets of eth0, a line each
  talosctl pcap -n 10.5.0.2 --bpf-filter 'tcp port 6443'           those of the Kubernetes API
  talosctl pcap -n 10.5.0.2 --duration 10s -o api.pcap             ten seconds, for Wireshark
  talosctl pcap -n 10.5.0.2 -o - | tcpdump -r -                    read by tcpdump as they come
  talosctl pcap -n 10.5.0.2 --bpf-filter "$(tcpdump -dd 'vlan 5')" whatever tcpdump can compile
`

/** talosctl pcap */
export const pcap = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Capture the packets of a link of a node: shown a line each, or kept in a file in the format of libpcap.')
    .option('--bpf-filter <filter>', 'only these: an expression such as "tcp port 443", or the output of "tcpdump -dd"', '')
    .option('--duration <duration>', 'end after this time; 0 is never', duration, 0)
    .option('-i, --interface <link>', 'the link', 'eth0')
    .option('-o, --output <file>', 'keep the packets in this file; "-" is standard output', '')
    .option('--promiscuous', 'also what is for other stations')
    .addOption(
      new Option('-s, --snaplen <bytes>', 'at most so many bytes of each packet').argParser(integer(0, 65536)).default(4096).hideHelp(),
    )
    .addHelpText('after', examples)
    .action((options: PcapOptions) => runPcap(io, cluster, options))

/** What is captured when nothing is chosen: a capture of its own packets would make ever more of them. */
const withoutItself = 'not tcp port 50000'

/** Captures until the time is over or Ctrl-C; either is a good end. */
export async function runPcap(io: Io, cluster: Cluster, options: PcapOptions): Promise<void> {
  await cluster.single('pcap')
  const bpfFilter = instructions(options.bpfFilter || withoutItself).map(([op, jt, jf, k]) => ({ op, jt, jf, k }))
  const request = { interface: options.interface, promiscuous: options.promiscuous === true, snapLen: options.snaplen, bpfFilter }
  const over = new AbortController()
  const signal = AbortSignal.any([io.signal, over.signal])
  const timer = options.duration > 0 ? setTimeout(() => over.abort(), timerDelay(options.duration)) : undefined
  const file = options.output && options.output !== '-' ? await create(options.output) : undefined
  if (!options.bpfFilter)
    remark(io, 'packets of the machine API (TCP port 50000) are left out, as this capture makes some itself: --bpf-filter chooses others\n')
  const count = new Counter(io, options.output !== '')
  const reader = new PcapReader()
  try {
    for await (const { bytes } of cluster.stream('machine.MachineService/PacketCapture', request, { signal })) {
      const records = reader.push(bytes)
      if (file) await file.write(bytes)
      else if (options.output === '-') io.stdout.write(bytes)
      else io.stdout.write(records.map((record) => `${packetSummary(record, reader.type ?? linkType.ethernet)}\n`).join(''))
      await io.stdout.drained()
      count.add(records.length, bytes.length)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    clearTimeout(timer)
    await file?.close()
    count.end()
  }
}

function instructions(filter: string): FilterInstruction[] {
  try {
    return packetFilter(filter)
  } catch (error) {
    if (error instanceof FilterError) throw new UsageError(error.message)
    throw error
  }
}

async function create(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'w', 0o600)
  } catch (error) {
    throw new UsageError(`create "${path}": ${codeOf(error)}`)
  }
}

/** Shows the amount on a terminal while packets go to a file, and the total at the end. */
class Counter {
  #packets = 0
  #bytes = 0
  #lastUpdate = 0

  constructor(
    readonly io: Io,
    readonly live: boolean,
  ) {}

  add(packets: number, bytes: number): void {
    this.#packets += packets
    this.#bytes += bytes
    if (!this.live || !this.io.stderr.isTTY || performance.now() - this.#lastUpdate < 200) return
    this.#lastUpdate = performance.now()
    this.io.stderr.write(`\r\u001b[K${this.#text()}`)
  }

  end(): void {
    if (this.#bytes > 0) remark(this.io, `${this.live ? '\r\u001b[K' : ''}captured ${this.#text()}\n`)
  }

  #text(): string {
    return `${this.#packets} packet${this.#packets === 1 ? '' : 's'}, ${humanSize(this.#bytes)}`
  }
}
