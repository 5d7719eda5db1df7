/** Recorded from a running control plane of the reference system with `get TYPE -o yaml`; recorded/<group>/ has the first and the longest of each kind. */
import { expect, test } from 'bun:test'
import { Glob } from 'bun'
import { parse } from 'yaml'
import { decodeSpec, encodeSpec } from '../../src/rpc/resource-codec.ts'
import { specYaml } from '../../src/rpc/resource-yaml.ts'

for await (const file of new Glob('*/*.txt').scan(`${import.meta.dir}/recorded`)) {
  test(`${file}: the spec and its message on the wire give the same YAML`, async () => {
    const documents = (await Bun.file(`${import.meta.dir}/recorded/${file}`).text()).split('\n---\n')
    for (const document of documents) {
      const type = /^ {4}type: (\S+)/m.exec(document)?.[1] ?? ''
      const shown = document.slice(document.search(/^spec:/m)).replace(/\n*$/, '\n')
      const { spec } = parse(shown)
      const expected = shown.startsWith('spec:\n') ? shown.slice('spec:\n'.length).replace(/^ {4}/gm, '') : shown.slice('spec: '.length)
      expect(specYaml(type, spec)).toBe(expected)
      expect(specYaml(type, decodeSpec(type, encodeSpec(type, spec)))).toBe(expected)
    }
  })
}
