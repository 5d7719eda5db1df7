import { formatIp } from '../../../../src/wire/ip.ts'

/** The address an option holds, '' when there is none. */
export const selectedAddresses = (bytes: Uint8Array | undefined): string => (bytes ? formatIp(bytes) : '')
