/** Numbers of TPM 2.0 (Trusted Platform Module Library, part 2: Structures). */

/** Command codes (6.5.2). */
export const commandCodes = {
  create: 0x153,
  createPrimary: 0x131,
  flushContext: 0x165,
  getCapability: 0x17a,
  load: 0x157,
  loadExternal: 0x167,
  pcrEvent: 0x13c,
  pcrRead: 0x17e,
  policyAuthorize: 0x16a,
  policyGetDigest: 0x189,
  policyPcr: 0x17f,
  startAuthSession: 0x176,
  unseal: 0x15e,
  verifySignature: 0x177,
} as const

/** A command. */
export type CommandName = keyof typeof commandCodes

/** Algorithms (6.3). */
export const algorithms = {
  rsa: 0x0001,
  sha1: 0x0004,
  aes: 0x0006,
  keyedHash: 0x0008,
  sha256: 0x000b,
  sha384: 0x000c,
  sha512: 0x000d,
  null: 0x0010,
  rsassa: 0x0014,
  ecc: 0x0023,
  cfb: 0x0043,
} as const

/** Hashes of PCR banks and the bytes of their digests. */
export const bankHashes = { sha1: 20, sha256: 32, sha384: 48, sha512: 64 } as const

/** A hash of a PCR bank. */
export type BankHash = keyof typeof bankHashes

/** Curve NIST P-256 (6.4). */
export const nistP256 = 0x0003

/** Permanent handles (7.4). */
export const permanent = { owner: 0x40000001, null: 0x40000007, password: 0x40000009 } as const

/** Structure tags (6.9). */
export const tags = { noSessions: 0x8001, sessions: 0x8002, verified: 0x8022 } as const

/** Kinds of sessions (6.11). */
export const sessionTypes = { hmac: 0x00, policy: 0x01 } as const

/** Attributes of a session in a command (8.4). */
export const sessionAttributes = { continueSession: 0x01, decrypt: 0x20, encrypt: 0x40 } as const

/** Attributes of an object (8.3). */
export const objectAttributes = {
  fixedTpm: 1 << 1,
  fixedParent: 1 << 4,
  sensitiveDataOrigin: 1 << 5,
  userWithAuth: 1 << 6,
  noDictionaryAttacks: 1 << 10,
  restricted: 1 << 16,
  decrypt: 1 << 17,
  sign: 1 << 18,
} as const

/** Most bytes of a command and of a response: the kernel's buffer. */
export const mostBytes = 4096
/** Number of PCRs of a bank (PC Client Platform TPM Profile). */
export const pcrCount = 24
