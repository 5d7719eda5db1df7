/** An instance of Sigstore of its own: an authority like Fulcio, a log of its certificates, a log of signatures like Rekor. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { bitString, boolean, element, explicit, implicit, integer, octetString, oid, sequence, tags, time } from '../../../src/wire/der.ts'
import { parseIp } from '../../../src/wire/ip.ts'
import { encodePem } from '../../../src/wire/pem.ts'
import { encodeName } from '../../../src/wire/x509/name.ts'
import { digestOf, json } from './signed-registry.ts'
import { timestampResponse } from './timestamp-response.ts'

const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const spki = (key: KeyObject) => key.export({ type: 'spki', format: 'der' })
const sha256 = (...parts: Uint8Array[]) => createHash('sha256').update(Buffer.concat(parts)).digest()
const base64 = (bytes: Uint8Array | string) => Buffer.from(bytes).toString('base64')

const extension = (id: string, value: Uint8Array, critical = false) =>
  sequence(oid(id), ...(critical ? [boolean(true)] : []), octetString(value))
const ecdsaSha256 = sequence(oid('1.2.840.10045.4.3.2'))
const codeSigning = '1.3.6.1.5.5.7.3.3'
const timeSerial = 2
const usualTime = new Date('2026-06-01T12:05:00Z')

function altName(subject: string): Uint8Array {
  const text = Buffer.from(subject)
  if (subject.includes('!')) return explicit(0, oid('1.3.6.1.4.1.57264.1.7'), explicit(0, element(tags.utf8String, text)))
  if (subject.includes('://')) return implicit(6, text)
  if (subject.includes('@')) return implicit(1, text)
  const address = parseIp(subject)
  return address ? implicit(7, address) : implicit(2, text)
}

/** How a signature differs from a good one. */
export interface SigningOptions {
  readonly issuer?: string
  /** A URI, an e-mail address, an IP address, a host name or a name like `user!domain`. */
  readonly subject?: string
  /** The issuer is in the extension of older certificates. */
  readonly older?: boolean
  /** When the entry was made in the log; the certificate is valid for ten minutes from its `notBefore`. */
  readonly signedAt?: Date
  readonly notBefore?: Date
  readonly purpose?: string
  readonly withoutCertificateLog?: boolean
  /** A certificate that the entry of the log names instead. */
  readonly loggedCertificate?: Uint8Array
  /** The log is of the second version, which has no time: an authority for time has confirmed that of the signature. */
  readonly timestamped?: boolean
  /** A signature in base64 instead of that of the certificate's key. */
  readonly signature?: string
}

/** An instance with new keys. */
export class SigstoreInstance {
  readonly #authority = newKey()
  readonly #certificateLog = newKey()
  readonly #log = newKey()
  readonly #time = newKey()
  readonly #name = encodeName({ commonName: 'authority', organizations: ['sigstore.test'] })
  readonly #start = new Date('2026-01-01T00:00:00Z')

  /** The trusted root of it. */
  get trustedRoot(): string {
    const validFor = { start: this.#start.toISOString() }
    const logOf = (baseUrl: string, { publicKey }: { publicKey: KeyObject }) => ({
      baseUrl,
      hashAlgorithm: 'SHA2_256',
      publicKey: { rawBytes: base64(spki(publicKey)), keyDetails: 'PKIX_ECDSA_P256_SHA_256', validFor },
      logId: { keyId: base64(sha256(spki(publicKey))) },
    })
    const subject = { organization: 'sigstore.test', commonName: 'authority' }
    const root = this.#root()
    return json({
      mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
      tlogs: [logOf('https://rekor.test', this.#log)],
      certificateAuthorities: [{ subject, certChain: { certificates: [{ rawBytes: base64(root) }] }, validFor }],
      ctlogs: [logOf('https://ctfe.test', this.#certificateLog)],
      timestampAuthorities: [
        { subject, certChain: { certificates: [{ rawBytes: base64(this.#timeCertificate) }, { rawBytes: base64(root) }] }, validFor },
      ],
    })
  }

  /** A timestamp of these bytes, in base64. */
  timestamp(bytes: Uint8Array, at: Date): string {
    const signer = { issuer: this.#name, serial: integer(timeSerial), privateKey: this.#time.privateKey }
    return base64(timestampResponse(sha256(bytes), at, signer))
  }

  #root(): Uint8Array {
    const { publicKey } = this.#authority
    const extensions = [
      extension('2.5.29.19', sequence(boolean(true)), true),
      extension('2.5.29.15', bitString(Buffer.from([0x04]), 2), true),
      extension('2.5.29.14', octetString(sha256(spki(publicKey)))),
    ]
    const tbs = this.#tbs(this.#name, publicKey, this.#start, new Date('2036-01-01T00:00:00Z'), extensions)
    return this.#certificate(tbs)
  }

  get #timeCertificate(): Uint8Array {
    const authorityKey = extension('2.5.29.35', sequence(implicit(0, sha256(spki(this.#authority.publicKey)))))
    const name = encodeName({ commonName: 'time' })
    const end = new Date('2036-01-01T00:00:00Z')
    return this.#certificate(this.#tbs(name, this.#time.publicKey, this.#start, end, [authorityKey], timeSerial))
  }

  #tbs(subject: Uint8Array, key: KeyObject, notBefore: Date, notAfter: Date, extensions: Uint8Array[], number = 1): Uint8Array {
    const validity = sequence(time(notBefore), time(notAfter))
    const serial = integer(number)
    return sequence(
      ...[explicit(0, integer(2)), serial, ecdsaSha256, this.#name, validity, subject, spki(key)],
      explicit(3, sequence(...extensions)),
    )
  }

  #certificate = (tbs: Uint8Array) => sequence(tbs, ecdsaSha256, bitString(sign('sha256', tbs, this.#authority.privateKey)))

  /** A certificate of the authority in DER. */
  certificate(key: KeyObject, options: SigningOptions = {}): Uint8Array {
    const { issuer = 'https://accounts.test', subject = 'builder@company.test', notBefore = new Date('2026-06-01T12:00:00Z') } = options
    const extensions = [
      extension('2.5.29.37', sequence(oid(options.purpose ?? codeSigning))),
      extension('2.5.29.35', sequence(implicit(0, sha256(spki(this.#authority.publicKey))))),
      extension('2.5.29.17', sequence(altName(subject)), true),
      options.older
        ? extension('1.3.6.1.4.1.57264.1.1', Buffer.from(issuer))
        : extension('1.3.6.1.4.1.57264.1.8', element(tags.utf8String, Buffer.from(issuer))),
    ]
    const tbs = (more: Uint8Array[]) =>
      this.#tbs(sequence(), key, notBefore, new Date(notBefore.getTime() + 600_000), [...extensions, ...more])
    const list = this.#certificateLogEntry(tbs([]), notBefore)
    return this.#certificate(tbs(options.withoutCertificateLog ? [] : [extension('1.3.6.1.4.1.11129.2.4.2', octetString(list))]))
  }

  /** A list with one signed certificate timestamp (RFC 6962 §3.2 and §3.3). */
  #certificateLogEntry(tbs: Uint8Array, at: Date): Uint8Array {
    const number = (value: number, length: number) => Buffer.from(value.toString(16).padStart(length * 2, '0'), 'hex')
    const timestamp = number(at.getTime(), 8)
    const { publicKey, privateKey } = this.#certificateLog
    const issuerKey = sha256(spki(this.#authority.publicKey))
    const entry = Buffer.concat([Buffer.from([0, 0]), timestamp, number(1, 2), issuerKey, number(tbs.length, 3), tbs, number(0, 2)])
    const signature = sign('sha256', entry, privateKey)
    const head = [Buffer.from([0]), sha256(spki(publicKey)), timestamp, number(0, 2), Buffer.from([4, 3])]
    const sct = Buffer.concat([...head, number(signature.length, 2), signature])
    return Buffer.concat([number(sct.length + 2, 2), number(sct.length, 2), sct])
  }

  /** An entry of the log about a body, with its promise and proof. */
  #entry(body: Buffer, { signedAt = usualTime }: SigningOptions) {
    const { publicKey, privateKey } = this.#log
    const logId = sha256(spki(publicKey))
    const integratedTime = signedAt.getTime() / 1000
    const logIndex = 77
    const promised = json({ body: base64(body), integratedTime, logID: logId.toString('hex'), logIndex })
    const promise = base64(sign('sha256', Buffer.from(promised), privateKey))
    const leaf = sha256(Buffer.from([0]), body)
    const neighbour = sha256(Buffer.from([0]), Buffer.from('another entry'))
    const root = sha256(Buffer.from([1]), neighbour, leaf)
    const note = `rekor.test - 1\n2\n${base64(root)}\n`
    const signature = base64(Buffer.concat([logId.subarray(0, 4), sign('sha256', Buffer.from(note), privateKey)]))
    const proof = {
      ...{ logIndex: '1', rootHash: base64(root), treeSize: '2', hashes: [base64(neighbour)] },
      checkpoint: { envelope: `${note}\n— rekor.test ${signature}\n` },
    }
    return { logId, integratedTime, logIndex, promise, proof }
  }

  /** A bundle of version 0.3 with a statement about the digest. */
  bundle(digest: string, options: SigningOptions = {}) {
    const { publicKey, privateKey } = newKey()
    const certificate = this.certificate(publicKey, options)
    const payloadType = 'application/vnd.in-toto+json'
    const payload = Buffer.from(
      json({ _type: 'https://in-toto.io/Statement/v1', subject: [{ digest: { sha256: digest.slice(7) } }], predicateType: 'x' }),
    )
    const signed = Buffer.concat([Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} `), payload])
    const { signature: sig = base64(sign('sha256', signed, privateKey)) } = options
    const verifier = base64(encodePem('CERTIFICATE', options.loggedCertificate ?? certificate))
    const payloadHash = { algorithm: 'sha256', value: sha256(payload).toString('hex') }
    const { signedAt = usualTime, timestamped = false } = options
    const kindVersion = { kind: 'dsse', version: timestamped ? '0.0.2' : '0.0.1' }
    const x509Certificate = { rawBytes: base64(options.loggedCertificate ?? certificate) }
    const second = {
      payloadHash: { algorithm: 'SHA2_256', digest: base64(sha256(payload)) },
      signatures: [{ content: sig, verifier: { x509Certificate, keyDetails: 'PKIX_ECDSA_P256_SHA_256' } }],
    }
    const spec = timestamped ? { dsseV002: second } : { payloadHash, signatures: [{ signature: sig, verifier }] }
    const body = Buffer.from(json({ apiVersion: kindVersion.version, kind: kindVersion.kind, spec }))
    const { logId, integratedTime, logIndex, promise, proof } = this.#entry(body, options)
    const entry = {
      ...{ logIndex: String(logIndex), logId: { keyId: base64(logId) }, kindVersion },
      integratedTime: timestamped ? undefined : String(integratedTime),
      inclusionPromise: timestamped ? undefined : { signedEntryTimestamp: promise },
      ...{ inclusionProof: proof, canonicalizedBody: base64(body) },
    }
    const rfc3161Timestamps = [{ signedTimestamp: this.timestamp(Buffer.from(sig, 'base64'), signedAt) }]
    const timestampVerificationData = timestamped ? { rfc3161Timestamps } : null
    return {
      mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
      verificationMaterial: { certificate: { rawBytes: base64(certificate) }, tlogEntries: [entry], timestampVerificationData },
      dsseEnvelope: { payload: base64(payload), payloadType, signatures: [{ sig }] },
    }
  }

  /** A bundle of a signature of the manifest itself, recorded in a log of the second version. */
  manifestBundle(manifest: string) {
    const { publicKey, privateKey } = newKey()
    const rawBytes = base64(this.certificate(publicKey))
    const signature = sign('sha256', Buffer.from(manifest), privateKey)
    const messageDigest = { algorithm: 'SHA2_256', digest: base64(sha256(Buffer.from(manifest))) }
    const verifier = { x509Certificate: { rawBytes }, keyDetails: 'PKIX_ECDSA_P256_SHA_256' }
    const spec = { hashedRekordV002: { data: messageDigest, signature: { content: base64(signature), verifier } } }
    const kindVersion = { kind: 'hashedrekord', version: '0.0.2' }
    const body = Buffer.from(json({ apiVersion: kindVersion.version, kind: kindVersion.kind, spec }))
    const { logId, logIndex, proof } = this.#entry(body, {})
    const entry = {
      ...{ logIndex: String(logIndex), logId: { keyId: base64(logId) }, kindVersion },
      ...{ inclusionProof: proof, canonicalizedBody: base64(body) },
    }
    const rfc3161Timestamps = [{ signedTimestamp: this.timestamp(signature, usualTime) }]
    const timestampVerificationData = { rfc3161Timestamps }
    return {
      mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
      verificationMaterial: { certificate: { rawBytes }, tlogEntries: [entry], timestampVerificationData },
      messageSignature: { messageDigest, signature: base64(signature) },
    }
  }

  /** A payload of the older layout, and the annotations of its layer. */
  layer(digest: string, options: SigningOptions = {}): { payload: string; annotations: Record<string, string> } {
    const { publicKey, privateKey } = newKey()
    const certificate = encodePem('CERTIFICATE', this.certificate(publicKey, options))
    const type = 'cosign container image signature'
    const payload = json({ critical: { image: { 'docker-manifest-digest': digest }, type }, optional: null })
    const { signature = base64(sign('sha256', Buffer.from(payload), privateKey)) } = options
    const data = { hash: { algorithm: 'sha256', value: digestOf(payload).slice(7) } }
    const logged = options.loggedCertificate ? encodePem('CERTIFICATE', options.loggedCertificate) : certificate
    const spec = { data, signature: { content: signature, publicKey: { content: base64(logged) } } }
    const body = Buffer.from(json({ apiVersion: '0.0.1', kind: 'hashedrekord', spec }))
    const { logId, integratedTime, logIndex, promise } = this.#entry(body, options)
    const Payload = { body: base64(body), integratedTime, logIndex, logID: logId.toString('hex') }
    const timestamp = this.timestamp(Buffer.from(signature, 'base64'), options.signedAt ?? usualTime)
    const annotations = {
      'dev.cosignproject.cosign/signature': signature,
      'dev.sigstore.cosign/certificate': certificate,
      'dev.sigstore.cosign/bundle': json({ SignedEntryTimestamp: promise, Payload }),
      ...(options.timestamped && { 'dev.sigstore.cosign/rfc3161timestamp': json({ SignedRFC3161Timestamp: timestamp }) }),
    }
    return { payload, annotations }
  }
}
