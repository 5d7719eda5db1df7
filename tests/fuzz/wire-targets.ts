/** Parsers of bytes that come from the network, from disks and from firmware. */
import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { readStateRecord } from '../../src/os/block/encryption/state-record.ts'
import {
  aged,
  answerWith,
  queryFor,
  readCode,
  readExtension,
  readLifetime,
  readQueryName,
  readQuestion,
  truncated,
} from '../../src/os/network/dns/message.ts'
import { newCA, parseCertificate, parseCertificates } from '../../src/pki/certificate.ts'
import { newCSR, parseCSR } from '../../src/pki/request.ts'
import { readMapperAnswer, writeMapperRequest } from '../../src/wire/block/device-mapper.ts'
import { cpioHeader, cpioTrailer, cpioTypes, parseCpio } from '../../src/wire/cpio.ts'
import { DbusAuthentication } from '../../src/wire/dbus/authentication.ts'
import { matchesRule, parseMatchRule } from '../../src/wire/dbus/match-rule.ts'
import { readDbusMessage, writeDbusMessage } from '../../src/wire/dbus/message.ts'
import { newRequest, readDhcp4, writeDhcp4 } from '../../src/wire/dhcp/dhcp4.ts'
import { Dhcp4Options, dhcp4Option, optionAddresses, optionNumber } from '../../src/wire/dhcp/dhcp4-options.ts'
import { Dhcp6Meaning, dhcp6Option, dhcp6Type, readDhcp6, writeDhcp6 } from '../../src/wire/dhcp/dhcp6.ts'
import { bootOptionTitle, formatBootOption, parseBootOrder } from '../../src/wire/efi/boot-option.ts'
import { readProtobufFields } from '../../src/wire/etcd/protobuf-fields.ts'
import { verifyWal } from '../../src/wire/etcd/wal.ts'
import { parseDirectory } from '../../src/wire/fat/directory.ts'
import { bootSector, geometryFor, parseBootSector } from '../../src/wire/fat/geometry.ts'
import { newTable, readTable, writeTable } from '../../src/wire/gpt/table.ts'
import { type Header, readHeader as readLuksHeader, writeHeader as writeLuksHeader } from '../../src/wire/luks2/header.ts'
import { parseMetadata } from '../../src/wire/luks2/metadata.ts'
import { readAdv, readMeta, writeAdv, writeMeta } from '../../src/wire/meta.ts'
import { readAttributes, u32 } from '../../src/wire/netlink/attributes.ts'
import { readAcknowledgement, readMessages, writeMessage } from '../../src/wire/netlink/message.ts'
import { readNtp, writeNtp } from '../../src/wire/ntp.ts'
import { arpProbe, readArp } from '../../src/wire/packet/arp.ts'
import { readDatagram, writeDatagram } from '../../src/wire/packet/datagram.ts'
import { PcapReader, pcapHeader, pcapRecord } from '../../src/wire/packet/pcap.ts'
import { packetSummary } from '../../src/wire/packet/summary.ts'
import { probe } from '../../src/wire/probe/probe.ts'
import { viewOf } from '../../src/wire/probe/view.ts'
import { parseSmbios, smbiosFields } from '../../src/wire/smbios.ts'
import { swapHeader } from '../../src/wire/swap.ts'
import { parseSyslog } from '../../src/wire/syslog.ts'
import { findTarPlaces } from '../../src/wire/tar/read.ts'
import { readTftp } from '../../src/wire/tftp/message.ts'
import { bytes, type Target, tarOf } from './target.ts'

const mac = '02:00:00:00:00:01'
const disk = { sectorSize: 512, size: 64 << 20, diskGuid: '0b0e5d2e-5a3c-4a0a-9a1e-0c9f6d2e8b11' }

const base64 = (length: number) => Buffer.alloc(length, 7).toString('base64')
const luksHeader: Header = {
  ...{ size: 16384, sequence: 3n, uuid: disk.diskGuid, label: '', subsystem: '' },
  metadata: {
    keyslots: {
      0: {
        ...{ type: 'luks2', key_size: 64, af: { type: 'luks1', stripes: 4000, hash: 'sha256' } },
        area: { type: 'raw', offset: '32768', size: '258048', encryption: 'aes-xts-plain64', key_size: 64 },
        kdf: { type: 'argon2id', time: 4, memory: 32, cpus: 1, salt: base64(32) },
      },
    },
    tokens: { 0: { type: 'sideroKMS', keyslots: [], UserData: { sealedData: '' } } },
    segments: {
      0: { type: 'crypt', offset: '16777216', size: 'dynamic', iv_tweak: '0', encryption: 'aes-xts-plain64', sector_size: 512 },
    },
    digests: {
      0: { type: 'pbkdf2', keyslots: ['0'], segments: ['0'], hash: 'sha256', iterations: 1000, salt: base64(32), digest: base64(32) },
    },
    config: { json_size: '12288', keyslots_size: '16744448' },
  },
}

/** A disk whose beginning is the input; both stretches that are looked at are there. */
function diskOf(input: Uint8Array) {
  const head = Buffer.alloc(64 << 10)
  head.set(input.subarray(0, head.length))
  return viewOf(disk.size, [
    { offset: 0, bytes: head },
    { offset: disk.size - head.length, bytes: head },
  ])
}

const tableBytes = bytes(
  ...writeTable(newTable(disk), { protective: true })
    .flat()
    .filter(({ offset }) => offset < 40 * 512)
    .sort((a, b) => a.offset - b.offset)
    .map(({ bytes }) => bytes),
)
const name = (...labels: string[]) => bytes(...labels.flatMap((label) => [label.length, label]), 0)
const dns = (id: number, flags: number, counts: [number, number, number, number], ...rest: (Uint8Array | number)[]) => {
  const head = Buffer.alloc(12)
  for (const [index, value] of [id, flags, ...counts].entries()) head.writeUInt16BE(value, index * 2)
  return bytes(head, ...rest)
}
const record = (type: number, data: Uint8Array) => bytes(0xc0, 12, 0, type, 0, 1, 0, 0, 1, 0, 0, data.length, data)
const option = bytes(0, 0, 41, 4, 208, 0, 0, 128, 0, 0, 0)

const der = (pem: string) => Buffer.from(pem.replaceAll(/-----.*?-----|\s/g, ''), 'base64')

const dbusCall = writeDbusMessage({
  ...{ type: 'call', serial: 1, path: '/org/freedesktop/DBus', interface: 'org.freedesktop.DBus', member: 'AddMatch' },
  body: [{ type: 's', value: "type='signal',member='PrepareForShutdown'" }],
})

/** Parsers by name. */
export const wireTargets: Record<string, Target> = {
  'DHCPv4 messages': {
    seeds: [
      writeDhcp4(newRequest(1, mac, [[dhcp4Option.messageType, optionNumber(1, 1)]])),
      writeDhcp4(
        newRequest(1, mac, [
          [dhcp4Option.hostname, Buffer.from('node-1.\0\0')],
          [dhcp4Option.search, Buffer.from('\x03eng\x05apple\x03com\0\x09marketing\xc0\x04', 'latin1')],
          [dhcp4Option.routers, optionAddresses('10.0.0.1')],
          [dhcp4Option.routes, Buffer.from([24, 10, 1, 2, 10, 0, 0, 1, 0, 10, 0, 0, 2])],
        ]),
      ),
    ],
    answers: ['DecodeError'],
    run: (input) => options4(readDhcp4(input).options),
  },
  'options of DHCPv4': {
    seeds: [Buffer.from('node-1'), Buffer.from('\x03eng\x05apple\x03com\0\x09marketing\xc0\x04', 'latin1')],
    answers: [],
    run: (input) => options4(new Map(Object.values(dhcp4Option).map((number) => [number, input]))),
  },
  'DHCPv6 messages': {
    seeds: [
      writeDhcp6({
        type: dhcp6Type.reply,
        transaction: 7,
        options: [
          { number: dhcp6Option.clientId, value: Buffer.from([0, 3, 0, 1, 2, 0, 0, 0, 0, 1]) },
          { number: dhcp6Option.search, value: name('example', 'org') },
          { number: dhcp6Option.iaNa, value: Buffer.alloc(12, 1) },
        ],
      }),
    ],
    answers: ['DecodeError'],
    run: (input) => options6(new Dhcp6Meaning(readDhcp6(input))),
  },
  'options of DHCPv6': {
    seeds: [name('example', 'org'), Buffer.alloc(16, 1)],
    answers: [],
    run: (input) =>
      options6(
        new Dhcp6Meaning({ type: 7, transaction: 1, options: Object.values(dhcp6Option).map((number) => ({ number, value: input })) }),
      ),
  },
  'DNS messages': {
    seeds: [
      dns(1, 0x0100, [1, 0, 0, 1], name('example', 'org'), 0, 1, 0, 1, option),
      dns(1, 0x8180, [1, 2, 0, 0], name('example', 'org'), 0, 1, 0, 1, record(1, Buffer.alloc(4)), record(28, Buffer.alloc(16))),
      dns(1, 0x8183, [1, 0, 1, 0], name('example', 'org'), 0, 1, 0, 1, record(6, Buffer.alloc(22))),
    ],
    answers: ['DecodeError'],
    run(input) {
      answerWith(input, 1)
      readQuestion(input)
      for (const read of [readCode, readLifetime, readExtension, readQueryName, truncated]) read(input)
      queryFor(input, 9)
      aged(input, 9, 5)
    },
  },
  'ARP packets': { seeds: [arpProbe(mac, '10.0.0.1')], answers: ['DecodeError'], run: (input) => void readArp(input) },
  datagrams: {
    seeds: ['10.0.0', 'fd00:'].map((net) =>
      writeDatagram({
        source: `${net}${net === 'fd00:' ? ':' : '.'}1`,
        destination: `${net}${net === 'fd00:' ? ':' : '.'}2`,
        sourcePort: 67,
        destinationPort: 68,
        payload: Buffer.alloc(9),
      }),
    ),
    answers: ['DecodeError'],
    run: (input) => void readDatagram(input),
  },
  'NTP packets': { seeds: [writeNtp({ stratum: 2, mode: 4 })], answers: ['DecodeError'], run: (input) => void readNtp(input) },
  'messages of TFTP': {
    seeds: [Buffer.from('\0\x03\0\x01abc', 'latin1'), Buffer.from('\0\x05\0\x01no such file\0', 'latin1')],
    answers: ['DecodeError'],
    run: (input) => void readTftp(input),
  },
  'messages of netlink': {
    seeds: [
      bytes(
        writeMessage({ type: 16, flags: 2, sequence: 1, body: bytes(Buffer.alloc(16), u32(3, 7), u32(4, 9)) }),
        writeMessage({ type: 2, flags: 0, sequence: 1, body: Buffer.alloc(16) }),
      ),
    ],
    answers: ['DecodeError'],
    run(input) {
      for (const message of readMessages(input)) {
        readAcknowledgement(message)
        readAttributes(message.body.subarray(16))
      }
    },
  },
  'captured packets': {
    seeds: [
      bytes(pcapHeader(1, 100), pcapRecord({ time: 1, length: 42, bytes: bytes(Buffer.alloc(12, 2), 8, 6, arpProbe(mac, '10.0.0.1')) })),
    ],
    answers: ['DecodeError'],
    run(input) {
      const reader = new PcapReader()
      for (let at = 0; at < input.length; at += 100)
        for (const packet of reader.push(input.subarray(at, at + 100))) packetSummary(packet, reader.type ?? 1)
    },
  },
  'D-Bus messages': {
    seeds: [
      dbusCall,
      bytes(dbusCall, writeDbusMessage({ type: 'signal', serial: 2, body: [{ type: 'v', value: { type: 't', value: 9n } }] })),
    ],
    answers: ['DecodeError'],
    run(input) {
      for (let rest = input, read = readDbusMessage(rest); read; read = readDbusMessage(rest)) {
        const [rule] = read.message.body ?? []
        if (rule?.type === 's') matchesRule(parseMatchRule(rule.value), read.message)
        rest = rest.subarray(read.length)
      }
    },
  },
  'D-Bus authentication': {
    seeds: ['\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n', '\0AUTH\r\nAUTH EXTERNAL 30\r\nBEGIN\r\nl'].map((text) =>
      Buffer.from(text),
    ),
    answers: ['DecodeError'],
    run: (input) => void new DbusAuthentication(disk.diskGuid).receive(input),
  },
  'syslog messages': {
    seeds: ['<34>1 2026-10-11T22:14:15.003Z h su 1 ID47 [a b="c"][d e="\\"f"] text', '<13>Oct 11 22:14:15 su[7]: text', 'text'].map(
      (line) => Buffer.from(line),
    ),
    answers: [],
    run: (input) => void parseSyslog(input),
  },
  'partition tables': {
    seeds: [tableBytes],
    answers: ['DecodeError'],
    run: (input) => void readTable(diskOf(input), 512),
  },
  'headers of LUKS2': {
    seeds: writeLuksHeader(luksHeader)
      .slice(0, 1)
      .flatMap((step) => step.map((each) => each.bytes)),
    answers: ['DecodeError'],
    run: async (input) =>
      void (await readLuksHeader(async (at, length) => Buffer.concat([input, Buffer.alloc(64 << 10)]).subarray(at, at + length), 64 << 10)),
  },
  'metadata of LUKS2': {
    seeds: [Buffer.from(JSON.stringify(luksHeader.metadata))],
    answers: ['DecodeError'],
    run: (input) => void parseMetadata(Buffer.from(input).toString(), luksHeader.size),
  },
  'answers of the device mapper': {
    seeds: [writeMapperRequest({ name: 'luks2-STATE', uuid: 'CRYPT-LUKS2-1' })],
    answers: ['DecodeError'],
    run: (input) => void readMapperAnswer(input),
  },
  'encryption of STATE in META': {
    seeds: [Buffer.from('{"EncryptionProvider":"luks2","EncryptionKeys":[{"KeySlot":0,"KeyNodeID":{}}]}'), Buffer.from('null')],
    answers: ['SyntaxError', 'ValiError'],
    run: (input) => void readStateRecord(Buffer.from(input).toString()),
  },
  'signatures of disks': {
    seeds: [
      tableBytes,
      swapHeader({ size: 1 << 20, uuid: disk.diskGuid, label: 'x' })!,
      bytes('XFSB', Buffer.alloc(500)),
      Buffer.alloc(1500),
    ],
    answers: ['DecodeError'],
    run: (input) => void probe(diskOf(input), 512),
  },
  'boot sectors of FAT': {
    seeds: [bootSector(geometryFor(disk.size, 'EFI'), { serial: 1, hidden: 0 })],
    answers: ['DecodeError'],
    run: (input) => void parseBootSector(input, disk.size),
  },
  'directories of FAT': {
    seeds: [bytes('FILE    TXT', 32, Buffer.alloc(20))],
    answers: ['DecodeError'],
    run: (input) => void parseDirectory(input),
  },
  META: {
    seeds: [writeMeta(new Map([[10, Buffer.from('value')]]))],
    answers: ['DecodeError'],
    run: (input) => void readMeta(input),
  },
  'log of etcd': {
    seeds: [gunzipSync(readFileSync(join(import.meta.dir, '../wire/etcd/etcd-3.6.16.wal.gz'))).subarray(0, 4096)],
    answers: ['DecodeError'],
    run: (input) => void verifyWal([{ name: '0000000000000000-0000000000000000.wal', bytes: input }]),
  },
  'fields of a message': {
    seeds: [bytes(8, 1, 0x12, 2, 1, 2, 0x19, new Uint8Array(8))],
    answers: ['DecodeError'],
    run: (input) => void [...readProtobufFields(input)],
  },
  ADV: { seeds: [writeAdv(new Map([[6, Buffer.from('value')]]))], answers: ['DecodeError'], run: (input) => void readAdv(input) },
  SMBIOS: {
    seeds: [bytes(1, 8, 0, 0, 1, 2, 0, 0, 'maker\0product\0\0', 127, 4, 0, 0, 0, 0)],
    answers: ['DecodeError'],
    run: (input) => parseSmbios(input).forEach(smbiosFields),
  },
  'boot options': {
    seeds: [
      formatBootOption({
        title: 'ichor',
        partition: { index: 1, firstSector: 2048, sectors: 100, uuid: disk.diskGuid },
        file: '\\EFI\\BOOT\\BOOTX64.EFI',
      }),
    ],
    answers: ['DecodeError'],
    run(input) {
      bootOptionTitle(input)
      parseBootOrder(input)
    },
  },
  'cpio archives': {
    seeds: [bytes(cpioHeader({ name: 'a', mode: cpioTypes.file, size: 0 }, 1), cpioTrailer())],
    answers: ['DecodeError'],
    run: (input) => void parseCpio(input),
  },
  'layers of images': {
    seeds: [bytes(tarOf('usr/install/amd64/manifest', 'x'), Buffer.alloc(1024))],
    answers: ['TarError'],
    run: async (input) => void (await findTarPlaces(async (offset, length) => input.subarray(offset, offset + length), input.length)),
  },
  certificates: {
    seeds: [der(newCA({ subject: { organizations: ['talos'] } }).crt)],
    answers: ['DecodeError'],
    run(input) {
      parseCertificates(pem('CERTIFICATE', input))
      parseCertificate(pem('CERTIFICATE', input))
    },
  },
  'certificate requests': {
    seeds: [der(newCSR({ subject: { commonName: 'x' } }).csr)],
    answers: ['DecodeError'],
    run: (input) => void parseCSR(pem('CERTIFICATE REQUEST', input)),
  },
}

const pem = (label: string, der: Uint8Array) => `-----BEGIN ${label}-----\n${Buffer.from(der).toString('base64')}\n-----END ${label}-----\n`

function options4(options: ReadonlyMap<number, Uint8Array>): void {
  const { type, server, prefixLength, leaseTime, routers, nameServers, timeServers, mtu, hostname, domain, message, search, routes } =
    new Dhcp4Options(options)
  void [type, server, prefixLength, leaseTime, routers, nameServers, timeServers, mtu, hostname, domain, message, search, routes]
}

function options6(meaning: Dhcp6Meaning): void {
  const { clientId, serverId, preference, rapidCommit, status, nameServers, search, timeServers } = meaning
  void [clientId, serverId, preference, rapidCommit, status, nameServers, search, timeServers, meaning.association(1)]
}
