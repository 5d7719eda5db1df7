import { expect, test } from 'bun:test'
import { generate } from '../../proto/generate.ts'

test('what is generated from the .proto files is up to date; "bun run proto" makes it so', async () => {
  for (const [path, text] of await generate()) expect(await Bun.file(`${import.meta.dir}/../../${path}`).text()).toBe(text)
})
