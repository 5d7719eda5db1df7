import { addressOnly, containsAddress, parsePrefix, selects } from '../../wire/prefix.ts'

/** Addresses without prefix length, in input order, that `valid` selects and no `excluded` subnet contains. */
export function allowedAddresses(addresses: readonly string[], valid: readonly string[], excluded: readonly string[]): string[] {
  const out = excluded.map(parsePrefix)
  return addresses.map(addressOnly).filter((address) => selects(valid, address) && !out.some((subnet) => containsAddress(subnet, address)))
}
