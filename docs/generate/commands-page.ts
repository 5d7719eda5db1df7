/** The page of all commands of talosctl, from the declarations that parse the command line. */
import { allPages } from '../../src/programs/talosctl/commands/client/docs.ts'
import { processIo } from '../../src/programs/talosctl/io.ts'
import { markdown } from '../../src/programs/talosctl/reference.ts'
import { generated } from './text.ts'

const about = `${generated} Every command with its flags. \`talosctl docs\` writes the same page, and pages for man(1).`

/** All commands on one page. */
export const commandsPage = async (): Promise<string> => markdown(await allPages(processIo()), about)
