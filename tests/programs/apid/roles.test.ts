import { expect, test } from 'bun:test'
import { visitorOf } from '../../../src/programs/apid/roles.ts'

const own = 'fdae:41e4:649b:9303::2'

test.each([
  [own, 'fdae:41e4:649b:9303::1', 'os:admin'],
  // Another network of the same kind, one of another kind, the open network, an IPv4 address, one with a scope.
  [own, 'fdae:41e4:649b:9403::1', 'os:reader'],
  [own, 'fdae:41e4:649b:9302::1', 'os:reader'],
  [own, '2001:db8::1', 'os:reader'],
  [own, '10.0.0.1', 'os:reader'],
  [own, 'fe80::1%eth0', 'os:reader'],
  [own, undefined, 'os:reader'],
  // On all addresses, or at one of another network, nobody is more than a reader.
  ['', 'fdae:41e4:649b:9303::1', 'os:reader'],
  ['2001:db8::2', '2001:db8::1', 'os:reader'],
  [undefined, 'fdae:41e4:649b:9303::1', 'os:reader'],
])('in maintenance at %s, a client from %s is %s', (host, address, role) => {
  expect(visitorOf(address, host)).toEqual({ roles: [role as 'os:admin'], impersonator: false })
})
