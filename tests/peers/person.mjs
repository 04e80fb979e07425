#!/usr/bin/env node
// A person with a browser: opens a page of issuer.mjs, signs in, grants what is asked, and goes where that leads.
//
//   person.mjs ADDRESS      environment: PERSON (the name to sign in with; default: ada)
let [address] = process.argv.slice(2);
if (!address) throw new Error('usage: person.mjs ADDRESS');
const cookies = new Map();

async function open(url, body) {
  const headers = { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
  const answer = await fetch(url, { method: body ? 'POST' : 'GET', headers, body, redirect: 'manual' });
  for (const line of answer.headers.getSetCookie()) {
    const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
    cookies.set(name, value);
  }
  return answer;
}

let answer = await open(address);
for (let steps = 0; steps < 20; steps += 1) {
  const next = answer.headers.get('location');
  if (next) {
    address = new URL(next, address).href;
    answer = await open(address);
    continue;
  }
  const page = await answer.text();
  const form = page.match(/<form[^>]*action="([^"]+)"[^>]*method="post"/i);
  if (!form) {
    console.log(page);
    process.exit(answer.ok ? 0 : 1);
  }
  const prompt = page.match(/name="prompt" value="([^"]+)"/)[1];
  address = new URL(form[1], address).href;
  answer = await open(address, new URLSearchParams({ prompt, login: process.env.PERSON ?? 'ada', password: 'any' }));
}
throw new Error(`no end: ${address}`);
