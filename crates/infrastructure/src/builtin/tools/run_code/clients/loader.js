const fs = require('node:fs'), vm = require('node:vm');
const sent = Buffer.alloc(Number(process.argv[1]));
for (let at = 0, more = 1; at < sent.length && more > 0; at += more) more = fs.readSync(0, sent, at, sent.length - at);
const given = JSON.parse(sent.toString('utf8'));
vm.runInThisContext(given.client, { filename: 'tools.js' })(given, require, (specifier) => import(specifier));
