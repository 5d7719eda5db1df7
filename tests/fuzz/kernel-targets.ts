/** Parsers of data from the kernel, which contains names of links and processes, rules and mounts chosen by others. */
import { readAcpiEvent } from '../../src/wire/netlink/acpi.ts'
import { readAddress } from '../../src/wire/netlink/address.ts'
import { attribute, nested, text, u8, u32 } from '../../src/wire/netlink/attributes.ts'
import { readAuditRecord, readAuditStatus, writeAuditChange } from '../../src/wire/netlink/audit.ts'
import {
  readChannels,
  readFeatureNames,
  readFeatures,
  readLinkInfo,
  readLinkModes,
  readLinkState,
  readRings,
  readWake,
} from '../../src/wire/netlink/ethtool.ts'
import { readFamilyGroups, readFamilyId, writeGeneric } from '../../src/wire/netlink/generic.ts'
import { readLink } from '../../src/wire/netlink/link.ts'
import { writeMessage } from '../../src/wire/netlink/message.ts'
import { readNamespaceId } from '../../src/wire/netlink/namespace-id.ts'
import { readNeighbour } from '../../src/wire/netlink/neighbour.ts'
import { changedTable, nftablesMessage, readFilterChain, readFilterRule } from '../../src/wire/netlink/nftables.ts'
import { readRoute } from '../../src/wire/netlink/route.ts'
import { readRule } from '../../src/wire/netlink/rule.ts'
import { readWireguard } from '../../src/wire/netlink/wireguard.ts'
import { parseDiskstats } from '../../src/wire/proc/disks.ts'
import { parseLoadavg } from '../../src/wire/proc/load.ts'
import { parseMeminfo } from '../../src/wire/proc/memory.ts'
import { parseModules } from '../../src/wire/proc/modules.ts'
import { parseMountinfo } from '../../src/wire/proc/mountinfo.ts'
import { parseNetworkDevices } from '../../src/wire/proc/network-devices.ts'
import { parsePressure } from '../../src/wire/proc/pressure.ts'
import { parseCommandLine, parseProcessStatus } from '../../src/wire/proc/process.ts'
import { parseCpuinfo } from '../../src/wire/proc/processors.ts'
import { parseSockets } from '../../src/wire/proc/sockets.ts'
import { parseSwaps } from '../../src/wire/proc/swaps.ts'
import { parseSystemStat } from '../../src/wire/proc/system.ts'
import { readUevent } from '../../src/wire/uevent.ts'
import nftables from '../wire/netlink/captured/nftables-of-linux-6.18.json'
import { captured } from '../wire/netlink/captured.ts'
import { bytes, type Target } from './target.ts'

/** Readers that answer or refuse in the same way, by number: an input's first byte selects one. */
const oneOf = (readers: readonly ((input: Uint8Array) => unknown)[], seeds: readonly (readonly [number, Uint8Array])[]): Target => ({
  seeds: seeds.map(([which, input]) => bytes(which, input)),
  answers: ['DecodeError'],
  run: (input) => void readers[(input[0] ?? 0) % readers.length]!(input.subarray(1)),
})

const asText = (parse: (text: string) => unknown) => (input: Uint8Array) => parse(Buffer.from(input).toString('utf8'))

const links = [readLink, readAddress, readRoute, readRule, readNeighbour, readNamespaceId] as const
const dumps = ['links', 'addresses', 'routes', 'rules', 'neighbours'] as const
const ethernet = [readFeatureNames, readLinkInfo, readLinkModes, readLinkState, readFeatures, readRings, readChannels, readWake]
const answer = (...attributes: Uint8Array[]) => writeGeneric(0, 1, attributes)
const bitSet = (type: number) =>
  nested(type, [u32(2, 64), nested(3, [nested(1, [u32(1, 5), text(2, 'magic'), attribute(3, new Uint8Array())])])])
const group = (index: number, name: string, id: number) => nested(index, [u32(2, id), text(1, name)])
const peer = nested(0, [
  attribute(1, Buffer.alloc(32, 1)),
  attribute(4, Buffer.alloc(16, 2)),
  nested(9, [nested(0, [attribute(2, Buffer.alloc(4))])]),
])
const acpiEvent = Buffer.alloc(44)
acpiEvent.write('button/power')

const processFiles: readonly (readonly [(text: string) => unknown, string])[] = [
  [parseDiskstats, `   8       0 sda ${'7 '.repeat(17)}\n`],
  [parseLoadavg, '0.00 0.01 0.05 1/123 4567\n'],
  [parsePressure, 'some avg10=0.00 avg60=0.12 avg300=1.50 total=2104311\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n'],
  [parseMeminfo, 'MemTotal:       16303704 kB\nHugePages_Total:       0\n'],
  [parseModules, 'nbd 61440 0 - Live 0x0000000000000000\nxfs 2 1 a,b, Live 0x0\n'],
  [parseMountinfo, '36 35 98:0 /mnt1 /mnt2\\040x rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n'],
  [parseNetworkDevices, `Inter-|\n face |\n  eth0: ${'1 '.repeat(16)}\n`],
  [parseProcessStatus, 'Name:\tx\nPid:\t1\nUid:\t0\t0\t0\t0\n'],
  [parseCommandLine, '/usr/bin/x\0--flag\0'],
  [parseCpuinfo, 'processor\t: 0\nmodel name\t: X\n\nprocessor\t: 1\n'],
  [
    parseSockets,
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1234 1\n',
  ],
  [parseSwaps, 'Filename\tType\tSize\tUsed\tPriority\n/dev/sda2\tpartition\t1024\t0\t-2\n'],
  [parseSystemStat, 'cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5 1\nctxt 1\nbtime 2\nprocesses 3\n'],
]

/** Parsers by name. */
export const kernelTargets: Record<string, Target> = {
  'links, addresses and routes of netlink': oneOf(
    links,
    dumps.flatMap((name, which) => captured(name).map(({ body }) => [which, body] as const)),
  ),
  'filters of netlink': oneOf(
    [readFilterChain, readFilterRule, (body) => changedTable({ type: nftablesMessage.newRule, body })],
    [
      [0, Buffer.from(nftables.chains, 'base64').subarray(16)],
      [1, Buffer.from(nftables.rules, 'base64').subarray(16)],
      [2, Buffer.from(nftables.rules, 'base64').subarray(16)],
    ],
  ),
  'messages of the audit system': oneOf(
    [readAuditRecord, readAuditStatus],
    [
      [0, writeMessage({ type: 1326, flags: 0, sequence: 0, body: Buffer.from('audit(1700000000.123:7): sig=31') })],
      [1, writeAuditChange({ pid: 1 })],
    ],
  ),
  'families of netlink': oneOf(
    [readFamilyId, readFamilyGroups, readAcpiEvent, (input) => readWireguard([input, input])],
    [
      [0, writeGeneric(1, 2, [attribute(1, Buffer.of(7, 0))])],
      [1, writeGeneric(1, 2, [text(2, 'acpi_event'), nested(7, [group(1, 'acpi_mc_group', 5)])])],
      [2, writeGeneric(1, 1, [attribute(1, acpiEvent)])],
      [3, writeGeneric(0, 1, [u32(1, 3), nested(8, [peer])])],
    ],
  ),
  'settings of Ethernet interfaces': oneOf(ethernet, [
    [0, answer(nested(2, [nested(1, [u32(1, 4), nested(3, [nested(1, [u32(1, 0), text(2, 'rx-gro')])])])]))],
    [1, answer(u8(2, 3))],
    [2, answer(bitSet(3), u32(5, 1000), u8(6, 1))],
    [3, answer(u8(2, 1))],
    [4, answer(bitSet(2), bitSet(4))],
    [5, answer(u32(2, 4096), u8(11, 2), u8(13, 1))],
    [6, answer(u32(5, 8), u32(9, 4))],
    [7, answer(bitSet(2))],
  ]),
  uevents: {
    seeds: [Buffer.from('add@/devices/x\0ACTION=add\0DEVPATH=/devices/pci/block/vda\0SUBSYSTEM=block\0')],
    answers: [],
    run(input) {
      const names = readUevent(input, 'block')
      if (names.some((name) => name.includes('/'))) throw new Error(`a name with a slash: ${names.join()}`)
    },
  },
  'files of /proc': oneOf(
    processFiles.map(([parse]) => asText(parse)),
    processFiles.map(([, sample], which) => [which, Buffer.from(sample)] as const),
  ),
}
