/** HTTP/2 error codes. RFC 9113, section 7. */
export const errorCode = {
  NO_ERROR: 0x0,
  PROTOCOL_ERROR: 0x1,
  INTERNAL_ERROR: 0x2,
  FLOW_CONTROL_ERROR: 0x3,
  SETTINGS_TIMEOUT: 0x4,
  STREAM_CLOSED: 0x5,
  FRAME_SIZE_ERROR: 0x6,
  REFUSED_STREAM: 0x7,
  CANCEL: 0x8,
  COMPRESSION_ERROR: 0x9,
  CONNECT_ERROR: 0xa,
  ENHANCE_YOUR_CALM: 0xb,
  INADEQUATE_SECURITY: 0xc,
  HTTP_1_1_REQUIRED: 0xd,
} as const

/** The name of an error code. */
export type ErrorName = keyof typeof errorCode

const names = Object.keys(errorCode) as ErrorName[]

/** The name of a code; an unknown one is treated as an internal error. */
export function errorName(code: number): ErrorName {
  return names[code] ?? 'INTERNAL_ERROR'
}

/** A protocol violation of the peer that ends the whole connection. */
export class ConnectionError extends Error {
  constructor(
    readonly code: ErrorName,
    message: string,
  ) {
    super(message)
    this.name = 'ConnectionError'
  }
}
