import { expect, test } from 'bun:test'
import { namesPackage, parsePackageUrl } from '../../src/oci/package-url.ts'

const parsed = (text: string) => {
  const found = parsePackageUrl(text)
  return found && [found.path, found.version, Object.fromEntries(found.qualifiers)]
}

test.each<[string, unknown]>([
  ['pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64', ['deb/debian/libc6', '2.36-9+deb12u14', { arch: 'amd64' }]],
  ['pkg:DEB/debian/mount', ['deb/debian/mount', undefined, {}]],
  ['pkg:npm/%40noble/ciphers@2.4.0', ['npm/@noble/ciphers', '2.4.0', {}]],
  ['pkg:npm/@noble/ciphers', ['npm/@noble/ciphers', undefined, {}]],
  ['pkg://golang/stdlib@1.26.8#net/http', ['golang/stdlib', '1.26.8', {}]],
  ['pkg:generic/a@1?checksum=sha256:ab+c', ['generic/a', '1', { checksum: 'sha256:ab+c' }]],
  ['pkg:deb', undefined],
  ['pkg:/', undefined],
  ['pkg:deb//mount', undefined],
  ['pkg:deb/%zz', undefined],
  ['deb/debian/mount', undefined],
  [`pkg:a/${'b'.repeat(5000)}`, undefined],
])('%s', (text, wanted) => {
  expect(parsed(text)).toEqual(wanted as never)
})

test.each<[string, string, boolean]>([
  ['pkg:deb/debian/mount', 'pkg:deb/debian/mount@2.38?arch=amd64', true],
  ['pkg:deb/debian/mount@2.38', 'pkg:deb/debian/mount@2.38?arch=amd64', true],
  ['pkg:deb/debian/mount@2.38?distro=debian-12', 'pkg:deb/debian/mount@2.38?arch=amd64', true],
  ['pkg:deb/debian/mount@2.37', 'pkg:deb/debian/mount@2.38?arch=amd64', false],
  ['pkg:deb/debian/mount?arch=arm64', 'pkg:deb/debian/mount@2.38?arch=amd64', false],
  ['pkg:deb/ubuntu/mount', 'pkg:deb/debian/mount@2.38', false],
])('%s names %s: %p', (wanted, known, result) => {
  const [a, b] = [parsePackageUrl(wanted), parsePackageUrl(known)]
  expect(a && b && namesPackage(a, b)).toBe(result)
})
