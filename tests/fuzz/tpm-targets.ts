/** Parsers of what a TPM answers, and of the policies beside it. */
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readToken, writeToken } from '../../src/os/block/encryption/tpm/token.ts'
import { joined, sized, TpmReader, u8, u16, u32 } from '../../src/wire/tpm2/buffer.ts'
import { parseEventLog, replay } from '../../src/wire/tpm2/event-log.ts'
import { eventDescriber } from '../../src/wire/tpm2/event-text.ts'
import { parseImaLog } from '../../src/wire/tpm2/ima-log.ts'
import { readResponse } from '../../src/wire/tpm2/message.ts'
import { readDigests, readPcrSelections, writePcrSelection } from '../../src/wire/tpm2/pcr.ts'
import { parsePcrSignatures, parsePolicyKey, signPolicy } from '../../src/wire/tpm2/pcr-signatures.ts'
import { readStorageRoot, storageRootTemplate } from '../../src/wire/tpm2/public-area.ts'
import { readPcrBanks, readPcrValues } from '../../src/wire/tpm2/tpm.ts'
import type { Target } from './target.ts'

const selection = writePcrSelection({ bank: 'sha256', pcrs: [7, 11] })
const digests = joined(u32(2), sized(new Uint8Array(32)), sized(new Uint8Array(32)))
const acknowledgement = joined(sized(new Uint8Array(32)), u8(1), sized(new Uint8Array(32)))
const response = (tag: number, body: Uint8Array) => joined(u16(tag), u32(10 + body.length), u32(0), body)
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

const eventLog = new Uint8Array(readFileSync(join(import.meta.dir, '../wire/tpm2/event-log.bin')))

const inLittleEndian = (...fields: readonly (string | Uint8Array)[]) =>
  fields.map((field) => {
    const bytes = Buffer.from(field as string)
    const length = Buffer.alloc(4)
    length.writeUInt32LE(bytes.length)
    return joined(length, bytes)
  })
const imaFields = joined(...inLittleEndian('sha256:\0digest', 'boot_aggregate\0'))
const imaEntry = joined(new Uint8Array([10, 0, 0, 0]), new Uint8Array(20).fill(1), ...inLittleEndian('ima-ng', imaFields))

/** Parsers by name. */
export const tpmTargets: Record<string, Target> = {
  'responses of a TPM': {
    seeds: [
      response(0x8001, joined(u32(0x80000000), selection)),
      response(0x8002, joined(u32(0x80000000), u32(selection.length), selection, acknowledgement)),
    ],
    answers: ['DecodeError', 'TpmError'],
    run: (input) => void readResponse(input, { name: 'load', hasHandle: true, sessions: input[1] === 2 ? 1 : 0 }),
  },
  'banks and values of PCRs': {
    seeds: [joined(u8(0), u32(5), selection), joined(u32(9), selection, digests)],
    answers: ['DecodeError'],
    run: (input) => {
      const [banks, values] = [() => readPcrBanks(input), () => readPcrValues(input, 'sha256')]
      const reader = new TpmReader(input, 'input')
      for (const run of [banks, values, () => readPcrSelections(reader), () => readDigests(reader)])
        try {
          run()
        } catch (error) {
          if (!(error instanceof Error) || error.name !== 'DecodeError') throw error
        }
    },
  },
  'event logs of the firmware': {
    seeds: [eventLog],
    answers: ['DecodeError'],
    run: (input) => {
      const events = parseEventLog(input)
      replay(events, 'sha256')
      events.forEach(eventDescriber('quiet'))
    },
  },
  'measurements of the kernel': {
    seeds: [imaEntry],
    answers: ['DecodeError'],
    run: (input) => void parseImaLog(input).map(({ digest }) => digest('sha256')),
  },
  'data of events of the firmware': {
    seeds: parseEventLog(eventLog)
      .filter(({ type }) => type >= 0x80000000)
      .map(({ type, data }) => joined(u8(type & 0xff), data)),
    answers: [],
    run: (input) => {
      const [type = 0] = input
      eventDescriber()({ pcr: 0, type: 0x80000000 + type, digests: new Map(), data: input.subarray(1) })
    },
  },
  'public areas of storage root keys': {
    seeds: [storageRootTemplate],
    answers: ['DecodeError'],
    run: (input) => void readStorageRoot(input),
  },
  'signatures of PCRs': {
    seeds: [Buffer.from(JSON.stringify({ sha256: [signPolicy(privateKey, 'sha256', [11], new Uint8Array(32))] }))],
    answers: ['DecodeError'],
    run: (input) => void parsePcrSignatures(Buffer.from(input).toString()),
  },
  'tokens of keys sealed by a TPM': {
    seeds: [
      Buffer.from(
        JSON.stringify(
          writeToken(
            { sealed: { privatePart: new Uint8Array(9), publicPart: new Uint8Array(9) }, pcrs: [7], policy: new Uint8Array(32) },
            1,
          ),
        ),
      ),
    ],
    answers: ['DecodeError', 'KeyError', 'SyntaxError'],
    run: (input) => void readToken(JSON.parse(Buffer.from(input).toString())),
  },
  'keys that sign PCRs': {
    seeds: [Buffer.from(publicKey.export({ type: 'spki', format: 'pem' }))],
    answers: ['DecodeError'],
    run: (input) => void parsePolicyKey(Buffer.from(input).toString()),
  },
}
