import { expect, test } from 'bun:test'
import { recipes } from '../../rootfs/build/rootfs.ts'

test('a tree is assembled again when the code changes that lays out its images', () => {
  const files = Object.keys(recipes())
  expect(files).toEqual(expect.arrayContaining(['build/assemble.ts', 'images.ts', '../src/oci/layer.ts', '../src/wire/tar/write.ts']))
})
