/** Commands of a TPM 2.0 (part 3), those that measuring and sealing take. */
import { DecodeError } from '../decode-error.ts'
import { joined, sized, TpmReader, u16, u32 } from './buffer.ts'
import { algorithms, type BankHash, type CommandName, permanent, tags } from './constants.ts'
import { type Authorization, emptyPassword, type Response, readResponse, writeCommand } from './message.ts'
import { type PcrSelection, readDigests, readPcrSelections, sortedPcrs, writePcrSelection } from './pcr.ts'
import { nameOf, policyKeyPublic, type RsaPublic, readStorageRoot, sealedTemplate, storageRootTemplate } from './public-area.ts'
import { Session, saltFor, sessionHandles, sessionRequest } from './session.ts'

/** Sends a command to a TPM and resolves to its response. */
export type Transmit = (command: Uint8Array) => Promise<Uint8Array>

/** A loaded object. */
export interface Loaded {
  readonly handle: number
  /** Public area (TPMT_PUBLIC). */
  readonly area: Uint8Array
  readonly name: Uint8Array
}

/** A sealed object outside of the TPM: both parts without their lengths. */
export interface Sealed {
  readonly privatePart: Uint8Array
  readonly publicPart: Uint8Array
}

/** Proof that a TPM verified a signature. */
export type Ticket = Uint8Array

const pcrCapability = 5
const empty = new Uint8Array()

/** A TPM. Responses are waited for one after another. */
export class Tpm {
  readonly #transmit: Transmit

  constructor(transmit: Transmit) {
    this.#transmit = transmit
  }

  async #send(
    name: CommandName,
    handles: readonly number[],
    parameters: Uint8Array,
    { authorizations = [], hasHandle = false }: { authorizations?: readonly Authorization[]; hasHandle?: boolean } = {},
  ): Promise<Response> {
    const response = await this.#transmit(writeCommand({ name, handles, authorizations, parameters }))
    return readResponse(response, { name, hasHandle, sessions: authorizations.length })
  }

  /** Active banks and the PCRs that each has. */
  async pcrBanks(): Promise<PcrSelection[]> {
    const { parameters } = await this.#send('getCapability', [], joined(u32(pcrCapability), u32(0), u32(64)))
    return readPcrBanks(parameters)
  }

  /** Values of PCRs by number. Throws DecodeError for one that the bank does not have. */
  async readPcrs(bank: BankHash, pcrs: readonly number[]): Promise<Map<number, Uint8Array>> {
    const values = new Map<number, Uint8Array>()
    for (let missing = sortedPcrs(pcrs); missing.length > 0; missing = missing.filter((pcr) => !values.has(pcr))) {
      // A response holds eight values at most, and specifies of which.
      const { parameters } = await this.#send('pcrRead', [], writePcrSelection({ bank, pcrs: missing }))
      const read = readPcrValues(parameters, bank)
      if (read.size === 0) throw new DecodeError('PCR values', 0, `the bank ${bank} has no PCR ${missing.join(', ')}`)
      for (const [pcr, value] of read) values.set(pcr, value)
    }
    return values
  }

  /** Extends a PCR by the hash of `data`, in every active bank by its own hash. */
  async measure(pcr: number, data: Uint8Array): Promise<void> {
    await this.#send('pcrEvent', [pcr], sized(data), { authorizations: [emptyPassword] })
  }

  /** Derives the storage root key from the owner's seed. */
  async createStorageRoot(): Promise<Loaded> {
    const sensitive = sized(joined(sized(empty), sized(empty)))
    const parameters = joined(sensitive, sized(storageRootTemplate), sized(empty), u32(0))
    const made = await this.#send('createPrimary', [permanent.owner], parameters, { authorizations: [emptyPassword], hasHandle: true })
    const area = new TpmReader(made.parameters, 'primary key').sized()
    readStorageRoot(area)
    return { handle: made.handle, area, name: nameOf(area) }
  }

  /** Starts a session whose key only the holder of the storage root key and this program know. */
  async startSession(kind: 'hmac' | 'policy', root: Loaded): Promise<Session> {
    const salt = saltFor(readStorageRoot(root.area))
    const { nonce, parameters } = sessionRequest(kind, salt)
    const started = await this.#send('startAuthSession', sessionHandles(root.handle), parameters, { hasHandle: true })
    return new Session(
      started.handle,
      salt,
      nonce,
      only(started.parameters, (reader) => reader.sized(64)),
    )
  }

  /** Seals data, encrypted on its way to the TPM, so that it is unsealed only in a session with this policy. */
  async seal(root: Loaded, session: Session, data: Uint8Array, policy: Uint8Array): Promise<Sealed> {
    const sensitive = sized(joined(sized(empty), sized(data)))
    const parameters = joined(sensitive, sized(sealedTemplate(policy)), sized(empty), u32(0))
    const subject = { command: 'create', names: [root.name] } as const
    const sent = session.protect(subject, parameters, 'parameter')
    const response = await this.#send('create', [root.handle], sent.parameters, { authorizations: [sent.by] })
    const reader = new TpmReader(accepted(session, 'create', response), 'sealed object')
    return { privatePart: reader.sized(), publicPart: reader.sized() }
  }

  /** Loads a sealed object. */
  async load(root: Loaded, { privatePart, publicPart }: Sealed): Promise<Loaded> {
    const parameters = joined(sized(privatePart), sized(publicPart))
    const { handle } = await this.#send('load', [root.handle], parameters, { authorizations: [emptyPassword], hasHandle: true })
    return { handle, area: publicPart, name: nameOf(publicPart) }
  }

  /** Unseals data in a policy session, encrypted on its way from the TPM. */
  async unseal(object: Loaded, session: Session): Promise<Uint8Array> {
    const sent = session.protect({ command: 'unseal', names: [object.name] }, empty, 'response')
    const response = await this.#send('unseal', [object.handle], sent.parameters, { authorizations: [sent.by] })
    return only(accepted(session, 'unseal', response), (reader) => reader.sized())
  }

  /** Loads the public half of a key that signs policies. */
  async loadPolicyKey(key: RsaPublic): Promise<Loaded> {
    const area = policyKeyPublic(key)
    const { handle } = await this.#send('loadExternal', [], joined(sized(empty), sized(area), u32(permanent.owner)), { hasHandle: true })
    return { handle, area, name: nameOf(area) }
  }

  /** Verifies an RSASSA signature of a SHA-256 digest. */
  async verify(key: Loaded, digest: Uint8Array, signature: Uint8Array): Promise<Ticket> {
    const parameters = joined(sized(digest), u16(algorithms.rsassa), u16(algorithms.sha256), sized(signature))
    const { parameters: ticket } = await this.#send('verifySignature', [key.handle], parameters)
    if (new TpmReader(ticket, 'ticket').u16() !== tags.verified) throw new DecodeError('ticket', 0, 'it is of another kind')
    return ticket
  }

  /** Requires the current values of PCRs. */
  async policyPcr(session: Session, selection: PcrSelection): Promise<void> {
    await this.#send('policyPcr', [session.handle], joined(sized(empty), writePcrSelection(selection)))
  }

  /** Replaces a policy that a key signed by that key. */
  async policyAuthorize(session: Session, approved: Uint8Array, keyName: Uint8Array, ticket: Ticket): Promise<void> {
    await this.#send('policyAuthorize', [session.handle], joined(sized(approved), sized(empty), sized(keyName), ticket))
  }

  /** The digest of the policy of a session. */
  async policyDigest(session: Session): Promise<Uint8Array> {
    const { parameters } = await this.#send('policyGetDigest', [session.handle], empty)
    return only(parameters, (reader) => reader.sized(64))
  }

  /** Removes an object or a session from the TPM's memory. */
  async flush(handle: number): Promise<void> {
    await this.#send('flushContext', [], u32(handle))
  }
}

/** Parameters of a response to a command with one session, checked and decrypted. */
function accepted(session: Session, name: CommandName, { parameters, acknowledgements: [by] }: Response): Uint8Array {
  if (!by) throw new DecodeError('TPM response', 0, 'the session is missing')
  return session.accept(name, parameters, by)
}

/** Reads parameters that are one value. */
function only<T>(parameters: Uint8Array, read: (reader: TpmReader) => T): T {
  const reader = new TpmReader(parameters, 'TPM parameters')
  const value = read(reader)
  reader.end()
  return value
}

/** Decodes the PCR capability. Throws DecodeError. */
export function readPcrBanks(parameters: Uint8Array): PcrSelection[] {
  const reader = new TpmReader(parameters, 'PCR banks')
  reader.u8() // whether there is more: there is one list
  if (reader.u32() !== pcrCapability) throw reader.failure('it is another capability')
  return readPcrSelections(reader)
}

/** Decodes the response of PCR_Read: values of one bank by number. Throws DecodeError. */
export function readPcrValues(parameters: Uint8Array, bank: BankHash): Map<number, Uint8Array> {
  const reader = new TpmReader(parameters, 'PCR values')
  reader.u32() // counts updates
  const selections = readPcrSelections(reader)
  const digests = readDigests(reader)
  reader.end()
  const pcrs = selections.filter((selection) => selection.bank === bank).flatMap((selection) => selection.pcrs)
  if (pcrs.length !== digests.length) throw reader.failure(`${digests.length} values of ${pcrs.length} PCRs`)
  return new Map(pcrs.map((pcr, at) => [pcr, digests[at] ?? empty]))
}
