import { expect, test } from 'bun:test'
import { nearest, nearestOf } from '../../src/document/nearest.ts'

const known = ['hostname', 'nameservers', 'interfaces', 'kubespan']

test('a word with a few wrong characters has a nearest one', () => {
  expect(nearest('hostnam', known)).toBe('hostname')
  expect(nearest('NameServer', known)).toBe('nameservers')
  expect(nearest('kubepsan', known)).toBe('kubespan')
})

test('a word unlike all others has none', () => {
  expect(nearest('disks', known)).toBeUndefined()
  expect(nearest('x'.repeat(101), ['x'.repeat(101)])).toBeUndefined()
})

test('several are sorted by distance, at most as many as wanted', () => {
  expect(nearestOf('links', ['link', 'links2', 'lines', 'routes', 'link'], 2)).toEqual(['link', 'links2'])
})
