import { expect, test } from 'bun:test'
import { release } from '../src/release.ts'

test('the release is of the API level, and its patch is above those that clients of the field have', () => {
  const [, minor, patch] = /^v1\.(\d+)\.(\d+)$/.exec(release.tag) ?? []
  expect(minor).toBe('13')
  expect(Number(patch)).toBeGreaterThanOrEqual(100)
})
