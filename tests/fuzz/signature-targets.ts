/** Parsers of signatures of images. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseBundle, parseStatement, signedContent } from '../../src/os/security/signatures/bundle.ts'
import { parsePayload } from '../../src/os/security/signatures/simple-signing.ts'
import { bytes, type Target } from './target.ts'

const bundle = readFileSync(join(import.meta.dir, '../os/security/provenance-bundle.json'))
const { dsseEnvelope } = parseBundle(bundle)
const statement = Buffer.from(dsseEnvelope?.payload ?? '', 'base64')
const [digest = ''] = parseStatement(statement)
const payload = { critical: { image: { 'docker-manifest-digest': digest }, type: 'cosign container image signature' } }

/** Parsers by name. */
export const signatureTargets: Record<string, Target> = {
  'bundles of Sigstore': {
    seeds: [bundle],
    answers: ['SignatureError'],
    run: (input) => void signedContent(parseBundle(input), digest),
  },
  'in-toto statements': {
    seeds: [statement],
    answers: [],
    run: (input) => void parseStatement(input),
  },
  'payloads of simple signing': {
    seeds: [bytes(JSON.stringify(payload))],
    answers: [],
    run: (input) => void parsePayload(input),
  },
}
